//! What launchctl prints, read back.

use super::*;

const PRINTED: &str = "gui/501/org.agent = {
\tactive count = 1
\tpath = /Users/ann/Library/LaunchAgents/org.agent.plist
\ttype = LaunchAgent
\tstate = running

\tprogram = /usr/bin/true
\tendpoints = {
\t\t\"x\" = {
\t\t\tpid = 1
\t\t\tstate = waiting
\t\t}
\t}
\tpid = 512
\truns = 3
\tlast exit code = 75
}
";

#[test]
fn what_print_shows_is_read_at_its_outermost_level() {
    assert_eq!(
        Job::parse(PRINTED),
        Job {
            state: "running".into(),
            pid: 512,
            runs: 3,
            last_exit: "75".into(),
            path: "/Users/ann/Library/LaunchAgents/org.agent.plist".into(),
        }
    );
}

#[test]
fn absent_is_what_the_text_says_and_not_a_number() {
    assert!(is_absent(
        "Bad request.\nCould not find service \"x\" in domain for user gui: 501"
    ));
    assert!(is_absent("Could not find domain for user gui: 501"));
    assert!(!is_absent("Operation not permitted"));
}

#[test]
fn every_property_list_of_a_folder_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = |label: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><plist version=\"1.0\"><dict><key>Label</key><string>{label}</string>\
             <key>ProgramArguments</key><array><string>/bin/agent</string><string>serve</string></array>\
             <key>EnvironmentVariables</key><dict><key>A</key><string>b</string></dict></dict></plist>"
        )
    };
    for name in ["org.agent", "org.agent.work"] {
        std::fs::write(folder.path().join(format!("{name}.plist")), list(name)).expect("written");
    }
    std::fs::write(folder.path().join("bad.plist"), "no list").expect("written");
    let (agents, notes) = agents(folder.path());
    let labels: Vec<&str> = agents.iter().map(|agent| agent.label.as_str()).collect();
    assert_eq!(labels, ["org.agent", "org.agent.work"]);
    assert_eq!(agents[0].argv, ["/bin/agent", "serve"]);
    assert_eq!(agents[0].environment, [("A".into(), "b".into())]);
    assert_eq!(notes.len(), 1);
}
