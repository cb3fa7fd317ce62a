//! The rows that ship as examples for a site can be used as they are.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests"
)]

use std::path::Path;

use fleet_update::restart::table::{Action, Owner, Subject, Table};

#[test]
fn every_example_loads_alone_and_with_all_others_and_is_chosen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/etc/fleet-update/mechanisms.d");
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".toml.example"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    for file in &files {
        Table::load(None, std::slice::from_ref(file)).unwrap();
    }
    let table = Table::load(None, &files).unwrap();
    let id = "0123456789abcdef".repeat(4);
    let docker = format!("/system.slice/docker-{id}.scope");
    let podman = format!("/machine.slice/libpod-{id}.scope/container");
    let pod = format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope");
    for (owner, parent, cgroup, expected) in [
        (Owner::External, "runsv", "/", "runit"),
        (Owner::External, "supervisord", "/", "supervisord"),
        (
            Owner::External,
            "containerd-shim-runc-v2",
            docker.as_str(),
            "docker",
        ),
        (Owner::External, "conmon", podman.as_str(), "podman"),
        (
            Owner::External,
            "containerd-shim-runc-v2",
            pod.as_str(),
            "kubernetes",
        ),
        (Owner::S6, "", "/", "s6"),
        (Owner::Scope, "", "/user.slice/x.scope", "respawn"),
        (Owner::Nobody, "", "/", "respawn"),
        (Owner::External, "pm2", "/", "external"),
    ] {
        let subject = Subject {
            owner,
            unit: "",
            label: "",
            cgroup,
            parent,
            kind: "gateway",
            service_type: "",
        };
        let row = table.choose(&subject).row.unwrap();
        assert_eq!(row.id, expected);
        match expected {
            "external" => assert_eq!(row.action, Action::Manual),
            "respawn" => assert_eq!(row.action, Action::Respawn),
            _ => {
                assert_eq!(row.action, Action::Command);
                assert!(row.argv[0].starts_with('/'));
            }
        }
    }
}
