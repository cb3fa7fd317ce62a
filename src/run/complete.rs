//! `update complete`: names for a shell to offer. Hidden, and called by the completion scripts.
//!
//! It reads files of the state folder and nothing else: a key press must cost no more than a few
//! milliseconds, and must change nothing. Whatever cannot be read offers no names. A shell may expand
//! what it is given (bash's `compgen -W` does), and profiles are named by users: a name that is not
//! made of harmless letters is not offered.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::app::{self, BUILTIN};
use crate::cli::Names;
use crate::config::Places;
use crate::state::State;
use crate::ui::Ui;
use crate::world::World;

/// Prints names, one a line.
pub fn run(world: &World, ui: &Ui, state_dir: Option<&Path>, names: Names) -> u8 {
    let dir = state_dir.map(|dir| world.cwd.join(dir));
    let Ok(places) = Places::of(world, dir.as_deref()) else {
        return 0;
    };
    let state = State::at(&places.state_dir);
    let found = match names {
        Names::Run => state.receipt_ids().unwrap_or_default(),
        Names::Migration => migrations(),
        Names::Profile => of_latest(&state, &["/homes"], "profile"),
        Names::User => of_latest(&state, &["/homes", "/runtimes"], "user"),
        Names::Unit => of_latest(&state, &["/runtimes"], "unit"),
    };
    let text = found
        .iter()
        .filter(|name| is_harmless(name))
        .fold(String::new(), |text, name| text + name + "\n");
    ui.result(&text);
    0
}

fn of_latest(state: &State, lists: &[&str], field: &str) -> Vec<String> {
    let Ok(Some(receipt)) = state.read_receipt("latest") else {
        return Vec::new();
    };
    let names: BTreeSet<String> = lists
        .iter()
        .filter_map(|list| receipt.pointer(list)?.as_array())
        .flatten()
        .filter_map(|row| row.get(field).and_then(Value::as_str))
        .map(ToOwned::to_owned)
        .collect();
    names.into_iter().collect()
}

fn migrations() -> Vec<String> {
    let folder = BUILTIN.get_dir(app::DEFAULT);
    folder
        .into_iter()
        .flat_map(include_dir::Dir::dirs)
        .filter_map(|step| Some(step.path().file_name()?.to_str()?.to_owned()))
        .collect()
}

fn is_harmless(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._@:+-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_expand_is_not_offered() {
        for name in ["work", "hermes-gateway@a.service", "0199-a.b"] {
            assert!(is_harmless(name), "{name}");
        }
        for name in [
            "$(id)", "`id`", "a b", "a'b", "", "-rf", "a\n", "é", "x\\x2dy",
        ] {
            assert!(!is_harmless(name), "{name}");
        }
    }
}
