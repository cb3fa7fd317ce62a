//! Secrets in every place of input, looked for in every place of output.
//!
//! A canary is a value that only its place knows. Some look like tokens, some like words; all of them hold
//! [`MARK`], so that one search finds any of them, also as base64, hexadecimal, percent-encoded or escaped.
//! What may be shown are names: one canary is the name of a profile, and must be found.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::machine::Machine;
use crate::support::fleet::CONFIG_V12;
use crate::support::sandbox::Sandbox;
use crate::support::{say, wait_for};

/// Stands in every canary, in some case.
const MARK: &str = "valkyr";

/// The name that may be shown.
const ALLOWED: &str = "valkyr000";

/// Makes canaries, each of another number.
#[derive(Default)]
struct Canaries(RefCell<usize>);

impl Canaries {
    fn next(&self) -> usize {
        *self.0.borrow_mut() += 1;
        *self.0.borrow()
    }

    /// A word like any other.
    fn plain(&self) -> String {
        format!("valkyr{0:03}-valkyr{0:03}", self.next())
    }

    /// One of the shapes that tokens have.
    fn token(&self) -> String {
        let n = self.next();
        match n % 9 {
            0 => format!("sk-proj-VaLkYr{n:03}aBcDeF0123456789valkyr{n:03}"),
            1 => format!("ghp_VaLkYr{n:03}abcdefghijklmnop0valkyr{n:03}"),
            2 => format!("AKIAVALKYR{n:03}ABCDEFG"),
            3 => format!("eyJ2YWxreXIiValkyr{n:03}.eyJzdWIiOvalkyr{n:03}.c2lnvalkyr{n:03}"),
            4 => format!("1234567{n:03}:AAFvalkyr{n:03}FakeFakeFakeFakeFakeFakevalkyr"),
            5 => format!("xoxb-valkyr{n:03}-valkyr{n:03}"),
            6 => format!("q8Zr1LmValkyr{n:03}X0vB7nT4kYc2Wvalkyr{n:03}"),
            7 => format!("Bearer valkyr{n:03}.valkyr{n:03}"),
            _ => format!("github_pat_valkyr{n:03}ABCDEFGHIJKLMNOPvalkyr{n:03}"),
        }
    }

    /// A token that can be the name of a file.
    fn name(&self) -> String {
        format!("ghp_VaLkYr{0:03}abcdefghijklmnop0valkyr{0:03}", self.next())
    }

    /// An address with a password.
    fn address(&self) -> String {
        let n = self.next();
        format!("https://user:valkyr{n:03}@host{n}.example/x?token=valkyr{n:03}")
    }

    fn either(&self) -> String {
        if (*self.0.borrow()).is_multiple_of(2) {
            self.token()
        } else {
            self.plain()
        }
    }
}

/// Every place of input.
fn plant(machine: &Machine, canaries: &Canaries) {
    let sandbox = &machine.fleet.sandbox;
    let home = "/home/owl/.hermes";
    let write = |path: &str, text: &str| sandbox.write(path, text, 0o600);
    // Values of a secrets file, quoted in every way, and the same values in settings that a step removes.
    let mut env = String::new();
    let mut repeated = String::new();
    for n in 0..60 {
        let value = canaries.either();
        let quote = ["", "\"", "'"][n % 3];
        let name = [
            "OPENAI_API_KEY",
            "TELEGRAM_BOT_TOKEN",
            "COLOUR",
            "LLM_MODEL",
            "DATABASE_URL",
        ][n % 5];
        let _ = writeln!(
            env,
            "{}{name}_{n}={quote}{value}{quote}",
            ["", "export "][n % 2]
        );
        repeated = value;
    }
    let _ = writeln!(
        env,
        "LLM_MODEL={}\nOPENAI_MODEL='{}'\n# {}",
        canaries.plain(),
        canaries.token(),
        canaries.token()
    );
    write(&format!("{home}/.env"), &env);
    // Keys of all kinds; the steps rewrite providers, sections and delegations.
    let mut config = CONFIG_V12.replace(
        "max_async_children: 5",
        &format!("max_async_children: '{repeated}'"),
    );
    config += "custom_providers:\n";
    for n in 0..12 {
        let _ = writeln!(
            config,
            "  - name: p{n}\n    base_url: {}\n    api_key: {}\n    headers: {{Authorization: '{}', X-Trace: '{}'}}\n    models: [{{name: m, token: {}}}]",
            canaries.address(),
            canaries.plain(),
            canaries.token(),
            canaries.token(),
            canaries.either()
        );
    }
    config += "mcp_servers:\n";
    for n in 0..10 {
        let _ = writeln!(
            config,
            "  s{n}:\n    url: {}\n    env: {{API_KEY: {}, SECRET: {}}}\n    args: ['--password', '{}']",
            canaries.address(),
            canaries.plain(),
            canaries.plain(),
            canaries.token()
        );
    }
    let _ = writeln!(
        config,
        "compression: {{summary_api_key: {}, summary_base_url: '{}', summary_model: '{}'}}\nstt: {{model: '{}', api_key: {}}}",
        canaries.plain(),
        canaries.address(),
        canaries.token(),
        canaries.token(),
        canaries.plain()
    );
    write(&format!("{home}/config.yaml"), &config);
    write(&format!("{home}/SOUL.md"), &canaries.token());
    write(
        &format!("{home}/auth.json"),
        &format!("{{\"token\": \"{}\"}}", canaries.plain()),
    );
    // Documents that are refused: an error may name a line, and quote nothing.
    let broken: Vec<String> = vec![
        format!("api_key: [{}\nb: ]]\n", canaries.plain()),
        format!("a: !{} x\n", canaries.token().replace(' ', "")),
        format!("a: *{}\n", canaries.plain()),
        format!("_config_version: '{}'\n", canaries.token()),
        format!("_config_version: {}\n", canaries.plain()),
        format!(
            "_config_version: 12\npassword: {0}\npassword: {0}x\n",
            canaries.plain()
        ),
        format!(
            "_config_version: 12\n{}: 1\n  x: 2\n",
            canaries.token().replace(':', "-")
        ),
        format!("\t{}\n", canaries.plain()),
        format!("- {}\n- {}\n", canaries.plain(), canaries.address()),
        format!("'{}", canaries.plain()),
        format!("\u{7}{}\n", canaries.plain()),
        canaries.token(),
        format!(
            "_config_version: 12\nmodel_catalog: {}\ndelegation: {}\nplugins: [{}]\n",
            canaries.plain(),
            canaries.token(),
            canaries.plain()
        ),
        format!(
            "_config_version: 12\ncustom_providers: {{x: {}}}\nagent: '{}'\n",
            canaries.plain(),
            canaries.address()
        ),
    ];
    for (n, text) in broken.iter().enumerate() {
        write(&format!("{home}/profiles/broken{n}/config.yaml"), text);
    }
    write(
        &format!("{home}/profiles/{ALLOWED}/config.yaml"),
        CONFIG_V12,
    );
    // What runtimes say of themselves.
    for n in 0..12 {
        let folder = format!("{home}/profiles/self{n}");
        write(&format!("{folder}/config.yaml"), CONFIG_V12);
        let text = match n % 4 {
            0 => format!("not JSON, {}", canaries.plain()),
            1 => format!(
                "{{\"pid\": 4000000, \"start_time\": 5, \"gateway_state\": \"{}\", \"code_version\": \"{}\", \"argv\": [\"{}\"]}}",
                canaries.token(),
                canaries.token(),
                canaries.plain()
            ),
            2 => format!("{{\"pid\": \"{}\"}}", canaries.plain()),
            _ => format!(
                "{{\"pid\": 1, \"start_time\": 1, \"served_profiles\": [\"{}\"]}}",
                canaries.plain()
            ),
        };
        write(&format!("{folder}/gateway_state.json"), &text);
        write(&format!("{folder}/gateway.pid"), &text);
        let answer = [
            "",
            "{\"result\": {\"pid\": 77, \"start_time\": 1, \"code_version\": \"",
        ][n % 2];
        machine.start(
            "owl",
            "
import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8); s.settimeout(0.2)
while not over():
    try: peer, _ = s.accept()
    except socket.timeout: continue
    try: peer.recv(100); peer.sendall(sys.argv[2].encode() + b'\\n'); peer.close()
    except OSError: pass
",
            &[
                &format!("{folder}/gateway.sock"),
                &format!("{answer}{}\"}}}}", canaries.either()),
            ],
        );
    }
    write(&format!("{home}/active_profile"), &canaries.plain());
    // Units, and the files that they name.
    for n in 0..10 {
        write(
            &format!("/home/owl/.config/systemd/user/hermes-gateway-self{n}.service"),
            &format!(
                "[Unit]\nDescription={}\n[Service]\nEnvironment=API_KEY={} COLOUR={}\nEnvironmentFile=/home/owl/u{n}.env\n\
                 Environment=HERMES_HOME={home}/profiles/self{n}\nExecStartPre=/bin/true --token={}\n\
                 ExecStart=/home/owl/fake/bin/python /home/owl/fake/bin/hermes gateway run --token {} --url {} {}\n\
                 [Install]\nWantedBy=default.target\n",
                canaries.token(),
                canaries.plain(),
                canaries.token(),
                canaries.plain(),
                canaries.plain(),
                canaries.address(),
                canaries.plain(),
            ),
        );
        write(
            &format!("/home/owl/u{n}.env"),
            &format!("SECRET={}\nWORD={}\n", canaries.token(), canaries.plain()),
        );
    }
    // A checkout and package metadata.
    write(
        "/home/owl/fake/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info/METADATA",
        &format!("Name: hermes-agent\nVersion: {}\n", canaries.token()),
    );
    write(&format!("{home}/hermes-agent/.git/HEAD"), &canaries.token());
    write(
        &format!("{home}/hermes-agent/pyproject.toml"),
        &format!("[project]\nversion = \"{}\"\n", canaries.token()),
    );
    write(&format!("{home}/.hermes-update-note"), &canaries.plain());
    // The site's own: an instruction and a command.
    machine.sh("mkdir -p /etc/fleet-update/mechanisms.d");
    machine.fleet.sandbox.write(
        "/etc/fleet-update/mechanisms.d/10-site.toml",
        &format!(
            "[[mechanism]]\nid = \"site\"\nmatch = {{ unit = \"hermes-gateway-self9.service\" }}\naction = \"manual\"\n\
             instruction = \"call with token {} or {}\"\n",
            canaries.token(), canaries.address()
        ),
        0o600,
    );
}

/// Processes with words and variables of which none may be shown.
fn start(machine: &Machine, canaries: &Canaries) {
    for n in 0..12 {
        let text = format!(
            "exec env -i API_KEY={} COLOUR={} HERMES_HOME=/home/owl/{} setsid --fork /home/owl/fake/bin/python \
             /home/owl/fake/bin/hermes gateway run --token {} --url '{}' '{}' </dev/null >/dev/null 2>&1",
            canaries.plain(),
            canaries.plain(),
            if n % 2 == 0 {
                ".hermes".to_owned()
            } else {
                canaries.name()
            },
            canaries.token().replace(' ', ""),
            canaries.address(),
            canaries.plain(),
        );
        machine.fleet.sandbox.shell(Some("owl"), &text);
    }
}

/// One place of output.
struct Shown {
    name: String,
    bytes: Vec<u8>,
}

fn all_files(sandbox: &Sandbox, folder: &str, shown: &mut Vec<Shown>) {
    for entry in std::fs::read_dir(sandbox.path(folder)).unwrap().flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        // The one place that holds the old bytes of homes, for root alone: what a rollback puts back.
        if path.ends_with("/snapshots") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            all_files(sandbox, &path, shown);
        } else {
            let bytes = sandbox.read(&path).unwrap();
            shown.push(Shown { name: path, bytes });
        }
    }
}

/// The forms in which a mark could be written.
fn forms() -> Vec<String> {
    let mut forms = Vec::new();
    for mark in [MARK, "VALKYR", "VaLkYr", "Valkyr"] {
        for shift in 0..3 {
            // What stands before moves the groups of three bytes.
            let text = base64(format!("{}{mark}", "x".repeat(shift)).as_bytes());
            let skip = [0, 2, 3][shift];
            forms.push(text[skip..].trim_end_matches('=').to_owned());
        }
        let hex: String = mark.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = mark.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let json: String = mark.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        forms.extend([hex, percent, json]);
    }
    // The last letter of a shifted group depends on what follows.
    for form in &mut forms {
        if form.len() < 12 && form.len() > 6 {
            form.pop();
        }
    }
    forms
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            if index <= group.len() {
                text.push(char::from(LETTERS[(word >> shift & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[test]
fn no_secret_of_any_place_is_in_any_output() {
    let Some(machine) = Machine::boot() else {
        return;
    };
    assert_eq!(base64(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
    let canaries = Canaries::default();
    let sandbox = &machine.fleet.sandbox;
    machine.sh("useradd -m -u 3900 owl && install -d -o owl -g owl -m 700 /home/owl/.hermes /home/owl/.hermes/profiles
        mkdir -p /home/owl/.config/systemd/user /home/owl/fake/bin /home/owl/fake/lib/python3.11/site-packages/hermes_cli
        mkdir -p /home/owl/fake/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info
        mkdir -p /home/owl/.hermes/hermes-agent/.git /home/owl/.hermes/hermes-agent/hermes_cli
        H=/home/owl; ln -sf /usr/bin/python3 $H/fake/bin/python
        printf 'home = /usr/bin\\nversion = 3.11.2\\n' >$H/fake/pyvenv.cfg
        printf 'import time\\ntime.sleep(9999)\\n' >$H/fake/bin/hermes
        for f in $H/fake/lib/python3.11/site-packages $H/.hermes/hermes-agent; do
            echo 'DEFAULT_CONFIG = {\"_config_version\": 33}' >$f/hermes_cli/config.py; done
        chown -R owl: $H; loginctl enable-linger owl");
    wait_for("the bus of owl", Duration::from_secs(30), || {
        sandbox.path("/run/user/3900/bus").exists().then_some(())
    });
    plant(&machine, &canaries);
    machine.sh("chown -R owl: /home/owl");
    sandbox.sh(
        Some("owl"),
        "systemctl --user daemon-reload; for n in 0 1 2 3 4 5 6 7; do
        systemctl --user enable --now hermes-gateway-self$n.service; done",
    );
    start(&machine, &canaries);
    machine.sh("printf '[notify]\\non-not-clean = [\"/bin/sh\", \"-c\", \"cat $0 >/run/told; echo $@ >>/run/told\"]\\n' \
        >/etc/fleet-update/config.toml");

    let mut shown = Vec::new();
    let mut run = |arguments: &str| {
        let output = sandbox.shell(None, &format!("/usr/bin/update {arguments}"));
        for (stream, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            shown.push(Shown {
                name: format!("update {arguments} ({stream})"),
                bytes,
            });
        }
    };
    for format in ["text", "json", "yaml"] {
        run(&format!("plan --verbose --format {format} --to 33"));
        run(&format!("status --verbose --format {format}"));
    }
    for format in ["text", "json"] {
        run(&format!("migrations diff --format {format} --to 33"));
    }
    run("apply --verbose --json --to 33 --metrics-file /run/fleet.prom");
    run("apply --verbose --to 33");
    for format in ["text", "json", "yaml"] {
        run(&format!("receipt show --format {format} --verbose"));
        run(&format!("receipt list --format {format}"));
        run(&format!("mechanisms --format {format}"));
        run(&format!("receipt verify --format {format}"));
    }
    run("receipt show --html /run/receipt.html");
    run("audit export");
    run("audit verify");
    run("migrations diff --home /home/owl/.hermes");
    run("apply --home /home/owl/.hermes/profiles/broken0 --json");
    run("rollback $(basename -s .json $(ls /var/lib/fleet-update/receipts/0* | head -1)) --json");
    run(
        "rollback $(basename -s .json $(ls /var/lib/fleet-update/receipts/0* | head -1)) --verbose",
    );
    machine.sh("systemd-run --wait --quiet --unit fleet-told --setenv=NOTIFY_SOCKET= /usr/bin/update apply --verbose --to 33 || :");
    let journal = machine
        .sh("journalctl --no-pager -o export -u fleet-told; journalctl -t update --no-pager");
    assert!(
        journal.contains("migrate") || journal.contains("homes"),
        "{journal}"
    );
    shown.push(Shown {
        name: "journal".into(),
        bytes: journal.into_bytes(),
    });
    for path in ["/run/fleet.prom", "/run/receipt.html", "/run/told"] {
        let bytes = sandbox
            .read(path)
            .unwrap_or_else(|| panic!("{path} was not written"));
        shown.push(Shown {
            name: path.into(),
            bytes,
        });
    }
    let diffs = shown
        .iter()
        .filter(|one| one.name.starts_with("update migrations diff --format"))
        .filter(|one| one.name.ends_with("(stdout)"));
    for diff in diffs {
        let text = String::from_utf8_lossy(&diff.bytes);
        assert!(
            text.contains("+++ /home/owl/.hermes"),
            "{}: {text}",
            diff.name
        );
    }
    all_files(sandbox, "/var/lib/fleet-update", &mut shown);
    machine.end_loops();

    let planted = *canaries.0.borrow();
    let forms = forms();
    let mut found = Vec::new();
    let mut allowed = 0;
    let mut size = 0;
    for place in &shown {
        size += place.bytes.len();
        let text = String::from_utf8_lossy(&place.bytes);
        allowed += usize::from(text.contains(ALLOWED));
        let text = text.replace(ALLOWED, "");
        let lower = text.to_lowercase();
        for (at, _) in lower.match_indices(MARK).take(6) {
            let from = lower.floor_char_boundary(at.saturating_sub(90));
            let to = lower.floor_char_boundary(at + 50);
            found.push(format!(
                "{}: …{}…",
                place.name,
                lower[from..to].escape_debug()
            ));
        }
        for form in forms.iter().filter(|form| text.contains(form.as_str())) {
            found.push(format!("{}: as {form}", place.name));
        }
    }
    say(&format!(
        "\n{planted} canaries, {} places of output, {size} bytes: {} found; the name that may be shown is in {allowed}",
        shown.len(),
        found.len()
    ));
    assert!(planted >= 300, "{planted}");
    assert!(allowed >= 10, "the search finds nothing at all");
    assert!(found.is_empty(), "{}", found.join("\n"));
    // The search does find what is there, in each form.
    let snapshots = Path::new("/var/lib/fleet-update/snapshots");
    let text = machine.sh(&format!(
        "grep -rlai {MARK} {} | head -1",
        snapshots.display()
    ));
    assert!(!text.is_empty(), "a snapshot holds the old bytes");
}

#[test]
fn the_search_knows_a_mark_in_every_form() {
    let forms = forms();
    for before in ["", "a", "ab", "abc"] {
        let text = base64(format!("{before}sk-valkyr123").as_bytes());
        assert!(
            forms.iter().any(|form| text.contains(form.as_str())),
            "{text} {forms:?}"
        );
    }
    for text in ["%76%61%6C%6B%79%72", "76616c6b7972"] {
        assert!(
            forms.iter().any(|form| text.contains(form.as_str())),
            "{text}"
        );
    }
}
