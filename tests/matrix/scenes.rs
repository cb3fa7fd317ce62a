//! The scenarios: each differs from all others in what systemd does, or in what the stand-in does to it.

use crate::scenario::{Scenario, Truth, When, command};

/// All that one run is made over.
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn all() -> Vec<Scenario> {
    use Truth::{Again, Beside, Gone, Ill, Looping, Renewed, Untouched};
    let s = Scenario::new;
    let wrapped = |name: &'static str| s(name).exec("/bin/sh -c 'STAND-IN & wait'");
    vec![
        // What comes back.
        s("aa-healthy"),
        s("drain").told("DRAIN=3"),
        s("drain-exit-0").told("EXIT=0").lines("Restart=on-failure"),
        s("drain-left-failed").lines("Restart=no\nRestartForceExitStatus="),
        s("drain-left-inactive").lines("Restart=on-failure\nSuccessExitStatus=75\nRestartForceExitStatus="),
        s("drain-unheeded").told("DEAF=USR1"),
        s("no-handler").told("DEAF=UNCAUGHT"),
        s("own-helper").told("DRAIN=0.3 HELPER=0"),
        s("own-helper-late").told("DRAIN=0.3 HELPER=2"),
        s("restart-sec-30").lines("RestartSec=30"),
        s("exec-stop").lines("ExecStop=/bin/sleep 5"),
        s("exec-stop-post").lines("ExecStopPost=/bin/sleep 3"),
        s("exec-start-post").lines("ExecStartPost=/bin/sleep 2"),
        s("stop-killed").told("DEAF=TERM").lines("TimeoutStopSec=2"),
        s("stop-slow").told("STOP=6"),
        s("stop-signal").lines("KillSignal=SIGINT"),
        s("stopped-process").prepare("kill -STOP $(CTL show --value -p MainPID UNIT)").lines("TimeoutStopSec=3"),
        s("type-exec").lines("Type=exec"),
        s("type-idle").lines("Type=idle"),
        s("type-notify").lines("Type=notify").told("NOTIFY=1 YOUNG=1"),
        s("type-forking").lines("Type=forking\nPIDFile=%t/stand-in-fork.pid").told("FORK=%t/stand-in-fork.pid"),
        s("start-20s").told("YOUNG=20"),
        s("start-notify-12s").lines("Type=notify").told("NOTIFY=1 YOUNG=12"),
        s("remain-after-exit").lines("Type=simple\nRemainAfterExit=yes\nRestart=no").exec("/bin/sh -c 'STAND-IN & sleep 1'"),
        wrapped("wrapper"),
        wrapped("wrapper-control-group").lines("KillMode=control-group"),
        s("wrapper-respawns").exec("/bin/sh -c 'while :; do STAND-IN; sleep 0.2; done'").starts(1),
        s("template").unit("hermes-x@template.service").exec(&command("%i", "gateway run"))
            .file(Some("/home/ann/.config/systemd/user/hermes-x@.service".into())),
        s("drop-in").exec("/bin/false").first(
            "mkdir -p FILE.d; printf '[Service]\\nExecStart=\\nExecStart=%s\\n' \
             '/opt/stand-in/bin/python -m hermes_cli.main -p drop-in gateway run' >FILE.d/x.conf"),
        s("edited").late("sed -i 's/^Restart=always/Environment=STAND_IN_MARK=new\\nRestart=always/' FILE").mark("new"),
        s("edited-drop-in").first("mkdir -p FILE.d; printf '[Service]\\nNice=1\\n' >FILE.d/x.conf")
            .late("printf '[Service]\\nEnvironment=STAND_IN_MARK=new\\n' >FILE.d/x.conf").mark("new"),
        s("disabled").first("CTL disable -q UNIT"),
        s("linked").file(Some("/srv/units/hermes-gateway-linked.service".into())).first("CTL link -q FILE"),
        s("runtime-folder").file(Some("/run/user/2001/systemd/user/hermes-gateway-runtime-folder.service".into())),
        s("transient").file(None).first(&transient("transient", "")),
        s("transient-collected").file(None).first(&transient("transient-collected", "--collect -E STAND_IN_EXIT=0 ")),
        s("socket").unit_lines("Requires=hermes-socket.socket\nAfter=hermes-socket.socket").first(
            "printf '[Socket]\\nListenStream=%%t/stand-in.sock\\nService=UNIT\\n' \
             >~/.config/systemd/user/hermes-socket.socket"),
        s("same-name").unit("hermes-same.service"),
        s("same-name").unit("hermes-same.service").system("bob"),
        s("other-user").of("bob"),
        s("system").system("bob"),
        s("system-slice").system("bob").lines("Slice=stand-in.slice\nPrivateTmp=no\nProtectSystem=yes"),
        s("serve").exec(&command("serve", "serve")),
        s("dashboard").exec(&command("dashboard", "dashboard")),
        // What others do meanwhile.
        s("killed-draining").told("DRAIN=4").lines("RestartSec=1")
            .during(When::Draining, "kill -9 $(CTL show --value -p MainPID UNIT)"),
        s("restarted-draining").told("DRAIN=4").during(When::Draining, "CTL restart UNIT"),
        s("restarted-stopping").told("STOP=9 DEAF=UNCAUGHT").during(When::Job, "CTL restart UNIT"),
        s("restarted-after").during(When::Started, "CTL restart UNIT").ends("restarted", "", Again).starts(2),
        s("stopped-draining").told("DRAIN=4").during(When::Draining, "CTL stop UNIT").ends("stopped", "operator", Gone),
        s("stopped-stopping").told("STOP=4 DEAF=UNCAUGHT").during(When::Job, "CTL stop UNIT")
            .ends("stopped", "operator", Gone),
        s("stopped-after").during(When::Started, "CTL stop UNIT").ends("stopped", "operator", Gone),
        s("reloaded-meanwhile").told("DRAIN=3").during(When::Draining, "CTL daemon-reload"),
        s("reexecuted-meanwhile").of("bob").told("DRAIN=3").during(When::Draining, "CTL daemon-reexec"),
        // What was down before.
        s("stopped").prepare("CTL stop UNIT").ends("stopped", "nonzero-exit", Gone).starts(0),
        s("stopped-clean").told("STATUS=0").prepare("CTL stop UNIT").ends("stopped", "", Gone).starts(0),
        s("failed-before").lines("Restart=no\nRestartForceExitStatus=").prepare("kill -9 $(CTL show --value -p MainPID UNIT)")
            .ends("down", "before", Gone).starts(0),
        s("limit-before").lines("RestartSec=0.1").prepare(
            "echo 0.1 1 >HOME/end; kill -9 $(CTL show --value -p MainPID UNIT)
             for i in $(seq 200); do [ $(CTL show --value -p ActiveState UNIT) = failed ] && break; sleep 0.1; done")
            .ends("down", "before", Gone).starts(0),
        s("never-started").asleep().ends("stopped", "", Gone).starts(0),
        s("disabled-asleep").asleep().first("CTL disable -q UNIT").ends("", "", Gone).no_row(),
        // What does not come back.
        s("crash-loop-limit").lines("RestartSec=0.2").prepare("echo 0.3 1 >HOME/end").ends("failed", "crash-loop", Looping),
        s("crash-loop").unit_lines("StartLimitIntervalSec=0").lines("RestartSec=1").prepare("echo 0.5 1 >HOME/end")
            .ends("failed", "crash-loop", Looping),
        s("crash-once").lines("RestartSec=1").prepare("echo 0.5 1 >HOME/end-once").ends("failed", "crash-loop", Again).starts(2),
        s("crash-late").unit_lines("StartLimitIntervalSec=0").lines("RestartSec=0.5").prepare("echo 1.5 1 >HOME/end")
            .ends("failed", "crash-loop", Looping),
        s("gone-after-settling").lines("Restart=no").prepare("echo 9 1 >HOME/end").ends("down", "it came up", Gone),
        s("program-missing").exec("/home/ann/bin/program-missing")
            .first(&launcher("program-missing")).prepare("rm ~/bin/program-missing").lines("Restart=no")
            .ends("down", "exit-code", Gone),
        s("program-missing-always").exec("/home/ann/bin/program-missing-always").lines("RestartSec=0.2")
            .first(&launcher("program-missing-always")).prepare("rm ~/bin/program-missing-always")
            .ends("failed", "crash-loop", Looping),
        s("program-missing-exec").exec("/home/ann/bin/program-missing-exec").lines("Type=exec\nRestart=no")
            .first(&launcher("program-missing-exec")).prepare("rm ~/bin/program-missing-exec")
            .ends("down", "exit-code", Gone),
        s("folder-missing").lines("WorkingDirectory=%h/folder\nRestart=no").first("mkdir ~/folder")
            .prepare("rmdir ~/folder").ends("down", "exit-code", Gone),
        s("start-pre").lines("ExecStartPre=/usr/bin/test ! -e %h/start-pre\nRestart=no").prepare("touch ~/start-pre")
            .ends("down", "exit-code", Gone),
        s("start-post").lines("ExecStartPost=/usr/bin/test ! -e %h/start-post\nRestart=no").prepare("touch ~/start-post")
            .ends("down", "exit-code", Gone),
        s("exit-78").lines("RestartPreventExitStatus=78").prepare("echo 0.5 78 >HOME/end").ends("down", "exit-code", Gone),
        s("exit-0").lines("Restart=on-failure").prepare("echo 0.5 0 >HOME/end").ends("down", "", Gone),
        s("exit-0-remains").lines("RemainAfterExit=yes\nRestart=no").prepare("echo 0.5 0 >HOME/end")
            .ends("unverified", "no process", Gone),
        s("condition").unit_lines("ConditionPathExists=!%h/condition").prepare("touch ~/condition")
            .ends("down", "condition", Gone),
        s("exec-condition").lines("ExecCondition=/usr/bin/test ! -e %h/exec-condition").prepare("touch ~/exec-condition")
            .ends("down", "condition", Gone),
        s("assert").unit_lines("AssertPathExists=!%h/assert").prepare("touch ~/assert").ends("down", "", Gone),
        s("never-ready").lines("Type=notify\nRestart=no\nTimeoutStartSec=5").told("NOTIFY=1")
            .prepare("touch HOME/unready").ends("down", "timeout", Gone),
        s("watchdog").unit_lines("StartLimitIntervalSec=0").lines("RestartSec=0.5").first("true")
            .prepare("sed -i 's/^Restart=always/Type=notify\\nEnvironment=STAND_IN_NOTIFY=1\\nWatchdogSec=1\\nRestart=always/' FILE")
            .ends("failed", "crash-loop", Looping),
        s("job-timeout").unit_lines("JobRunningTimeoutSec=2").told("STOP=5 DEAF=UNCAUGHT").ends("down", "", Gone),
        s("requirement-gone").unit_lines("Requires=hermes-needed.target\nAfter=hermes-needed.target")
            .first("printf '[Unit]\\nAssertPathExists=!%%h/needed\\n' >~/.config/systemd/user/hermes-needed.target")
            .prepare("touch ~/needed"),
        // What is refused, and must not be drained.
        s("masked").prepare("ln -sf /dev/null FILE").ends("failed", "masked", Untouched),
        s("file-missing").prepare("rm FILE").ends("failed", "not-found", Untouched),
        s("file-missing-unread").late("rm FILE").ends("failed", "not-found", Untouched),
        s("file-bad").prepare("sed -i 's/^ExecStart=.*/&\\n&/' FILE").ends("failed", "bad-setting", Untouched),
        s("refuses-stop").unit_lines("RefuseManualStop=yes").ends("failed", "only-by-dependency", Untouched),
        s("refuses-start").prepare("sed -i 's/^.Unit.$/&\\nRefuseManualStart=yes/' FILE").ends("failed", "only-by-dependency", Untouched),
        s("frozen").prepare("CTL freeze UNIT").ends("manual", "frozen", Untouched),
        s("frozen-past-manager").prepare("echo 1 >/sys/fs/cgroup$(CTL show --value -p ControlGroup UNIT)/cgroup.freeze")
            .ends("manual", "frozen", Untouched),
        s("bus-restarted").of("carl").told("DRAIN=4").during(When::Draining, "CTL restart dbus.service").unwitnessed(),
        s("bus-killed").of("carl").told("STOP=4 DEAF=UNCAUGHT").during(When::Job, "CTL kill -s KILL dbus.service").unwitnessed(),
        s("oneshot").lines("Type=oneshot\nRemainAfterExit=yes\nRestart=no\nRestartForceExitStatus=")
            .exec("/bin/sh -c 'STAND-IN & sleep 1'").ends("manual", "", Untouched),
        s("keeper").exec("/home/ann/bin/runsv -c 'STAND-IN & wait'").first("mkdir -p ~/bin; cp /bin/sh ~/bin/runsv")
            .ends("manual", "", Untouched),
        // What is not what it was.
        wrapped("kill-mode-process").lines("KillMode=process\nRestart=no").told("DEAF=UNCAUGHT")
            .ends("failed", "old-survives", Beside),
        s("kill-mode-none").lines("KillMode=none\nRestart=no").told("DEAF=UNCAUGHT").ends("failed", "old-survives", Beside),
        s("says-degraded").prepare("echo degraded >HOME/says").ends("failed", "self", Ill),
        s("says-failed").prepare("echo startup_failed >HOME/says").ends("failed", "self", Ill),
        s("says-starting").prepare("echo starting >HOME/says").ends("failed", "self", Ill),
        s("silent").prepare("touch HOME/mute").ends("unverified", "self", Ill),
        s("says-old").prepare("touch HOME/old-record").ends("unverified", "self", Ill),
        s("other-home").prepare("sed -i 's/-p other-home/-p other-home-2/' FILE; mkdir -p HOME-2; cp HOME/config.yaml HOME-2")
            .ends("failed", "wrong successor", Ill),
        s("other-kind").prepare("sed -i 's/gateway run/serve/' FILE").ends("failed", "wrong successor", Ill),
        // What others' restarts take along; both are fresh by themselves.
        s("bound-to").exec("/opt/fresh/bin/python -m hermes_cli.main -p bound-to gateway run")
            .unit_lines("BindsTo=hermes-gateway-drain.service\nAfter=hermes-gateway-drain.service")
            .ends("current", "respawned", Renewed),
        s("part-of").exec("/opt/fresh/bin/python -m hermes_cli.main -p part-of gateway run")
            .unit_lines("PartOf=hermes-gateway-stop-slow.service").ends("current", "respawned", Renewed),
        s("bound-to-lost").exec("/opt/fresh/bin/python -m hermes_cli.main -p bound-to-lost gateway run")
            .unit_lines("BindsTo=hermes-gateway-exit-78.service\nAfter=hermes-gateway-exit-78.service")
            .ends("failed", "collateral", Gone),
        s("fresh").exec("/opt/fresh/bin/python -m hermes_cli.main -p fresh gateway run").ends("current", "", Untouched),
    ]
}

/// Units without a process when the plan is made.
pub fn between() -> Vec<Scenario> {
    let s = Scenario::new;
    vec![
        s("aa-healthy"),
        s("comes-back")
            .lines("RestartSec=6")
            .late("kill -9 $(CTL show --value -p MainPID UNIT)")
            .ends("current", "", Truth::Renewed),
        s("never-comes-back")
            .unit_lines("StartLimitIntervalSec=0")
            .lines("RestartSec=2\nWorkingDirectory=%h/never")
            .first("mkdir ~/never")
            .late("rmdir ~/never; kill -9 $(CTL show --value -p MainPID UNIT)")
            .ends("down", "crash-loop", Truth::Looping),
    ]
}

/// One of bob's own and one of the system's, for a run by bob.
pub fn denied() -> Vec<Scenario> {
    vec![
        Scenario::new("own").of("bob"),
        Scenario::new("of-the-system")
            .system("bob")
            .ends("failed", "denied", Truth::Untouched),
    ]
}

fn transient(name: &str, options: &str) -> String {
    format!(
        "systemd-run --user -q {options}-E STAND_IN_NAME=ann-{name} --unit UNIT {}",
        command(name, "gateway run")
    )
}

/// A program of its own, so that a scenario can take it away.
fn launcher(name: &str) -> String {
    format!(
        "mkdir -p ~/bin; printf '#!/bin/sh\\nexec %s\\n' '{}' >~/bin/{name}; chmod +x ~/bin/{name}",
        command(name, "gateway run")
    )
}
