//! Who keeps a process running: told by its control group and by what stands above it, never by a
//! name that somebody gave to a unit.
//!
//! | first that holds | supervisor |
//! |---|---|
//! | the desktop program's credential is in its environment, and its parent lives | desktop |
//! | a known respawning program stands above it | that program: also below a unit, whose restart would restart all of that program's children |
//! | innermost unit is a service, and it has no terminal of a person | that unit |
//! | parent is a shell that runs a script | that shell |
//! | innermost unit is a scope | a person's session |
//! | it is process 1, or the parent is a container's | the container |
//! | parent is process 1 or a person's shell, and no service manager runs here | nobody |
//! | else | unknown: hands off |
//!
//! Pure: values in, values out.

use std::path::PathBuf;

use super::processes::{Ancestor, Seen};
use super::procfs::{Cgroup, innermost_service};
use super::{Manager, Supervisor};
use crate::app::App;

/// Programs that start other programs again when they end, or own when they start.
const KEEPERS: &[&str] = &[
    "runsv",
    "supervise",
    "supervisord",
    "pm2",
    "PM2",
    "circusd",
    "circus.circusd",
    "god",
    "dinit",
    "supervise-daemon",
    "procServ",
    "nodemon",
    "forever",
    "honcho",
    "foreman",
    "overmind",
    "hivemind",
    "process-compose",
    "mprocs",
    "watchexec",
    "monit",
    "cron",
    "crond",
    "fcron",
    "atd",
    "anacron",
    "conmon",
    "containerd-shim",
    "containerd-shim-runc-v2",
];

/// First processes of containers: they end with their only child.
const CONTAINER_INITS: &[&str] = &[
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "podman-init",
];

/// Who keeps a process running; `service_manager` is whether one runs on this machine.
#[must_use]
pub fn supervisor_of(app: &App, seen: &Seen, service_manager: bool) -> Supervisor {
    if let Some(desktop) = desktop(app, seen) {
        return desktop;
    }
    if let Some(keeper) = keeper(&seen.ancestors) {
        return keeper;
    }
    let cgroup = innermost_service(&seen.process.cgroup);
    let parent = seen.ancestors.first();
    match &cgroup {
        Some(unit) if !unit.is_scope() && !is_user_manager(unit) => {
            if on_pseudo_terminal(seen.process.terminal) {
                // A terminal emulator or editor that is a service: the process is its user's.
                return Supervisor::Nobody;
            }
            return Supervisor::Systemd {
                scope: unit.manager_uid.map_or(Manager::System, Manager::User),
                unit: unit.unit.clone(),
            };
        }
        _ => {}
    }
    if let Some(shell) = parent.filter(|parent| parent.scripted_shell) {
        return Supervisor::External {
            program: shell.program.clone(),
            pid: shell.pid,
        };
    }
    match cgroup {
        Some(unit) if unit.is_scope() && unit.unit != "init.scope" => {
            return Supervisor::Scope { unit: unit.unit };
        }
        Some(unit) => {
            return Supervisor::Unknown {
                seen: format!("it runs in {} itself", unit.unit),
            };
        }
        None => {}
    }
    if service_manager {
        return Supervisor::Unknown {
            seen: format!(
                "its control group {:?} belongs to no unit",
                seen.process.cgroup
            ),
        };
    }
    match parent {
        None => Supervisor::External {
            program: String::from("the container"),
            pid: 0,
        },
        Some(parent) if parent.pid == 1 && CONTAINER_INITS.contains(&parent.program.as_str()) => {
            Supervisor::External {
                program: parent.program.clone(),
                pid: parent.pid,
            }
        }
        Some(parent) if parent.pid == 1 || parent.shell => Supervisor::Nobody,
        Some(parent) => Supervisor::Unknown {
            seen: format!("its parent is {} (process {})", parent.program, parent.pid),
        },
    }
}

fn desktop(app: &App, seen: &Seen) -> Option<Supervisor> {
    let parent = seen.ancestors.first().filter(|parent| parent.pid != 1)?;
    let remote = seen.process.argv.iter().any(|word| {
        app.desktop
            .remote_flags
            .iter()
            .any(|flag| flag == word.split('=').next().unwrap_or(word))
    });
    if remote {
        return Some(Supervisor::Desktop {
            parent: String::from("ssh"),
        });
    }
    let set = |name: &String| {
        seen.process
            .env
            .iter()
            .any(|(known, value)| known == name && !value.is_empty())
    };
    (!app.desktop.env.is_empty() && app.desktop.env.iter().all(set)).then(|| Supervisor::Desktop {
        parent: parent.program.clone(),
    })
}

/// The nearest program above that starts its children again.
fn keeper(ancestors: &[Ancestor]) -> Option<Supervisor> {
    ancestors.iter().find_map(|above| {
        if above.program == "s6-supervise" {
            // It works in the service directory that it supervises (s6-supervise's manual).
            return Some(Supervisor::S6 {
                slot: above
                    .cwd
                    .clone()
                    .unwrap_or_else(|| PathBuf::from("/run/service")),
            });
        }
        KEEPERS
            .contains(&above.program.as_str())
            .then(|| Supervisor::External {
                program: above.program.clone(),
                pid: above.pid,
            })
    })
}

fn is_user_manager(unit: &Cgroup) -> bool {
    unit.manager_uid.is_none() && unit.unit.starts_with("user@") && unit.unit.ends_with(".service")
}

/// Whether a controlling terminal is a pseudo-terminal's (majors 136 to 143, "devices.txt" of the
/// kernel): a service's own, by `TTYPath=`, is a console.
fn on_pseudo_terminal(terminal: u32) -> bool {
    // The major number is in bits 8 to 19 of `tty_nr` (proc_pid_stat(5)).
    (136..=143).contains(&((terminal >> 8) & 0xfff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::runtimes::Recognised;
    use crate::fleet::{Incarnation, Process};

    const USER: &str = "/user.slice/user-1001.slice/user@1001.service";

    fn seen(cgroup: &str, ancestors: Vec<Ancestor>) -> Seen {
        Seen {
            process: Process {
                incarnation: Incarnation {
                    boot_id: "b".into(),
                    pid: 99,
                    start_ticks: 1,
                    pid_namespace: None,
                },
                uid: 1001,
                parent: ancestors.first().map_or(0, |parent| parent.pid),
                session: 99,
                terminal: 0,
                argv: ["python", "-m", "hermes_cli.main", "serve"]
                    .map(str::to_owned)
                    .to_vec(),
                cgroup: cgroup.to_owned(),
                exe: None,
                exe_deleted: false,
                cwd: None,
                env: Vec::new(),
                env_readable: true,
                caught_signals: 0,
                started_at_nanos: 0,
            },
            recognised: Recognised {
                kind: "serve".into(),
                profile: None,
                home: None,
                managed: true,
            },
            foreign: false,
            ancestors,
        }
    }

    fn above(pid: u32, program: &str) -> Ancestor {
        Ancestor {
            pid,
            program: program.to_owned(),
            scripted_shell: program == "script",
            shell: program == "bash",
            cgroup: String::new(),
            cwd: Some("/run/service/gateway-ops".into()),
        }
    }

    fn of(seen: &Seen, service_manager: bool) -> Supervisor {
        let app = App::builtin(crate::app::DEFAULT).expect("valid");
        supervisor_of(&app, seen, service_manager)
    }

    #[test]
    fn each_line_of_the_table_holds() {
        let unit = |scope, unit: &str| Supervisor::Systemd {
            scope,
            unit: unit.into(),
        };
        let external = |program: &str, pid| Supervisor::External {
            program: program.into(),
            pid,
        };
        let user_unit = format!("{USER}/app.slice/hermes-work.service");
        let scope = format!("{USER}/app.slice/run-1.scope");
        for (cgroup, ancestors, booted, expected) in [
            (
                user_unit.as_str(),
                vec![above(9, "systemd"), above(1, "systemd")],
                true,
                unit(Manager::User(1001), "hermes-work.service"),
            ),
            (
                &user_unit,
                vec![above(20, "wrapper"), above(9, "systemd")],
                true,
                unit(Manager::User(1001), "hermes-work.service"),
            ),
            (
                &user_unit,
                vec![above(20, "script"), above(9, "systemd")],
                true,
                unit(Manager::User(1001), "hermes-work.service"),
            ),
            (
                "/system.slice/system-agent.slice/agent@ops.service",
                vec![above(1, "systemd")],
                true,
                unit(Manager::System, "agent@ops.service"),
            ),
            (
                "/system.slice/supervisor.service",
                vec![above(20, "supervisord"), above(1, "systemd")],
                true,
                external("supervisord", 20),
            ),
            (
                "/system.slice/cron.service",
                vec![above(21, "script"), above(20, "cron"), above(1, "systemd")],
                true,
                external("cron", 20),
            ),
            (
                &scope,
                vec![above(20, "bash"), above(9, "systemd")],
                true,
                Supervisor::Scope {
                    unit: "run-1.scope".into(),
                },
            ),
            (
                "/user.slice/user-1001.slice/session-3.scope",
                vec![above(1, "systemd")],
                true,
                Supervisor::Scope {
                    unit: "session-3.scope".into(),
                },
            ),
            (
                &scope,
                vec![above(20, "script"), above(9, "systemd")],
                true,
                external("script", 20),
            ),
            (
                "/",
                vec![above(20, "runsv"), above(1, "runit")],
                false,
                external("runsv", 20),
            ),
            (
                "/",
                vec![above(20, "s6-supervise"), above(1, "s6-svscan")],
                false,
                Supervisor::S6 {
                    slot: "/run/service/gateway-ops".into(),
                },
            ),
            ("/", vec![above(1, "tini")], false, external("tini", 1)),
            ("/", vec![], false, external("the container", 0)),
            ("/", vec![above(1, "sysvinit")], false, Supervisor::Nobody),
            (
                "/",
                vec![above(20, "bash"), above(1, "sysvinit")],
                false,
                Supervisor::Nobody,
            ),
        ] {
            assert_eq!(
                of(&seen(cgroup, ancestors.clone()), booted),
                expected,
                "{cgroup} {ancestors:?}"
            );
        }
        for (cgroup, ancestors, booted) in [
            ("/", vec![above(1, "systemd")], true),
            ("/", vec![above(20, "mystery"), above(1, "sysvinit")], false),
            (USER, vec![above(9, "systemd")], true),
            (
                &format!("{USER}/init.scope"),
                vec![above(9, "systemd")],
                true,
            ),
        ] {
            let found = of(&seen(cgroup, ancestors), booted);
            assert!(
                matches!(found, Supervisor::Unknown { .. }),
                "{cgroup} {found:?}"
            );
        }
    }

    #[test]
    fn a_persons_terminal_inside_a_service_is_not_that_service() {
        let mut process = seen(
            &format!("{USER}/app.slice/emacs.service"),
            vec![above(20, "bash")],
        );
        process.process.terminal = 136 << 8;
        assert_eq!(of(&process, true), Supervisor::Nobody);
        process.process.terminal = 4 << 8 | 1;
        assert!(matches!(of(&process, true), Supervisor::Systemd { .. }));
    }

    #[test]
    fn the_desktop_keeps_only_the_child_that_holds_its_credential() {
        let scope = format!("{USER}/app.slice/app-hermes.scope");
        let mut child = seen(
            &scope,
            vec![above(20, "hermes-desktop"), above(9, "systemd")],
        );
        child.process.env = vec![("HERMES_DESKTOP".into(), "set".into())];
        assert!(matches!(of(&child, true), Supervisor::Scope { .. }));
        child
            .process
            .env
            .push(("HERMES_DASHBOARD_SESSION_TOKEN".into(), "set".into()));
        assert_eq!(
            of(&child, true),
            Supervisor::Desktop {
                parent: "hermes-desktop".into()
            }
        );
        child.ancestors = vec![above(1, "systemd")];
        assert!(
            matches!(of(&child, true), Supervisor::Scope { .. }),
            "an orphan has no desktop any more"
        );
        let mut remote = seen(&scope, vec![above(30, "sshd"), above(1, "systemd")]);
        remote
            .process
            .argv
            .push("--ssh-session-token-file=/x".into());
        assert_eq!(
            of(&remote, true),
            Supervisor::Desktop {
                parent: "ssh".into()
            }
        );
    }
}
