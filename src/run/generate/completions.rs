//! Completions: what `clap_complete` makes of the definition, mended so that names of profiles, users, units,
//! runs and migrations come from `update complete` (`run/complete`) when a key is pressed.
//!
//! Every mend is counted: where the text that it replaces is not there, as after an upgrade of
//! `clap_complete`, generating fails instead of leaving a script that offers file names.

use clap::Command;
use clap_complete::Shell;

use crate::error::{Error, Kind, Result};

/// Options and positional arguments whose values are names, by id, and the word for `update complete`.
const NAMED: &[(&str, &str)] = &[
    ("profile", "profile"),
    ("user", "user"),
    ("run", "run"),
    ("unit", "unit"),
    ("id", "migration"),
];

/// A positional argument whose values are names.
struct Place {
    /// The commands that lead to it.
    path: Vec<String>,
    /// What zsh's script says before its action.
    help: String,
    id: String,
    word: &'static str,
}

/// A script while it is mended.
struct Script(String);

impl Script {
    /// Replaces every `from`, of which there must be one at least.
    fn mend(&mut self, from: &str, to: &str) -> Result<()> {
        if !self.0.contains(from) {
            return Err(Error::new(
                Kind::Input,
                format!("the generated completions do not hold {from:?} any more"),
            ));
        }
        self.0 = self.0.replace(from, to);
        Ok(())
    }
}

/// The completions of a shell.
///
/// # Errors
/// When the generated script is not what the mends are for.
pub fn script(shell: Shell, command: Command) -> Result<String> {
    let mut command = without_hidden(&command);
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command, "update", &mut bytes);
    let mut script = Script(String::from_utf8_lossy(&bytes).into_owned());
    let mut places = Vec::new();
    find_places(&command, &mut Vec::new(), &mut places);
    let options: Vec<(&str, &str)> = NAMED
        .iter()
        .filter(|(id, _)| {
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some(*id))
        })
        .copied()
        .collect();
    match shell {
        Shell::Bash => bash(&mut script, &options, &places)?,
        Shell::Zsh => zsh(&mut script, &options, &places)?,
        Shell::Fish => fish(&mut script, &options, &places)?,
        Shell::Elvish => elvish(&mut script, &options, &places)?,
        Shell::PowerShell => powershell(&mut script, &options, &places)?,
        _ => {}
    }
    let lines: Vec<&str> = script.0.lines().map(str::trim_end).collect();
    Ok(lines.join("\n").trim_start().to_owned() + "\n")
}

/// The same command without what is hidden.
fn without_hidden(command: &Command) -> Command {
    let mut copy = Command::new(command.get_name().to_owned())
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(command.get_arguments().filter(|one| !one.is_hide_set()));
    if let Some(about) = command.get_about() {
        copy = copy.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        copy = copy.version(version.to_owned());
    }
    let inner = command.get_subcommands().filter(|one| !one.is_hide_set());
    copy.subcommands(inner.map(without_hidden))
}

fn find_places(command: &Command, path: &mut Vec<String>, places: &mut Vec<Place>) {
    for argument in command.get_positionals() {
        let id = argument.get_id().as_str();
        if let Some((_, word)) = NAMED.iter().find(|(named, _)| *named == id) {
            places.push(Place {
                path: path.clone(),
                help: argument
                    .get_help()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                id: id.to_owned(),
                word,
            });
        }
    }
    for subcommand in command.get_subcommands() {
        path.push(subcommand.get_name().to_owned());
        find_places(subcommand, path, places);
        path.pop();
    }
}

fn bash(script: &mut Script, options: &[(&str, &str)], places: &[Place]) -> Result<()> {
    for (option, word) in options {
        let case = |answer: &str| {
            format!("                --{option})\n                    COMPREPLY=({answer})\n")
        };
        script.mend(
            &case("$(compgen -f \"${cur}\")"),
            &case(&format!(
                "$(compgen -W \"$(\"$1\" complete {word} 2>/dev/null)\" -- \"${{cur}}\")"
            )),
        )?;
    }
    for place in places {
        let label = format!(
            "        update__subcmd__{})\n            opts=\"",
            place.path.join("__subcmd__")
        );
        script.mend(
            &label,
            &format!("{label}$(\"$1\" complete {} 2>/dev/null) ", place.word),
        )?;
    }
    Ok(())
}

fn zsh(script: &mut Script, options: &[(&str, &str)], places: &[Place]) -> Result<()> {
    const FUNCTION: &str = "_update_names() {
    local -a names
    names=(${(f)\"$(_call_program names update complete $1 2>/dev/null)\"})
    compadd -a names
}

";
    // An action that begins with a blank is called as it stands (zshcompsys(1), _arguments).
    for (option, word) in options {
        let lines: Vec<String> = script
            .0
            .lines()
            .map(|line| {
                if line.starts_with(&format!("'*--{option}=")) {
                    line.replace(":_default'", &format!(": _update_names {word}'"))
                } else {
                    line.to_owned()
                }
            })
            .collect();
        script.0 = lines.join("\n") + "\n";
        script.mend(
            &format!(": _update_names {word}'"),
            &format!(": _update_names {word}'"),
        )?;
    }
    // Two commands may ask for the same thing in the same words; one mend serves both.
    let mut asked: Vec<(String, &str)> = places
        .iter()
        .map(|place| (format!(":{} -- {}:", place.id, place.help), place.word))
        .collect();
    asked.sort_unstable();
    asked.dedup();
    for (colon, word) in asked {
        script.mend(
            &format!("{colon}_default'"),
            &format!("{colon} _update_names {word}'"),
        )?;
    }
    script.mend("_update() {\n", &format!("{FUNCTION}_update() {{\n"))
}

fn fish(script: &mut Script, options: &[(&str, &str)], places: &[Place]) -> Result<()> {
    // No condition: the functions of the script fail where an option still waits for its value.
    for (option, word) in options {
        script.mend(&format!(" -l {option} "), &format!(" -l {option} "))?;
        script.0.push_str(&format!(
            "complete -c update -l {option} -x -a \"(update complete {word} 2>/dev/null)\"\n"
        ));
    }
    for place in places {
        let condition = match place.path.as_slice() {
            [first, second, ..] => format!(
                "__fish_update_using_subcommand {first}; and __fish_seen_subcommand_from {second}"
            ),
            other => format!("__fish_update_using_subcommand {}", other.concat()),
        };
        script.0.push_str(&format!(
            "complete -c update -n \"{condition}\" -f -a \"(update complete {} 2>/dev/null)\"\n",
            place.word
        ));
    }
    Ok(())
}

fn elvish(script: &mut Script, options: &[(&str, &str)], places: &[Place]) -> Result<()> {
    const END: &str = "    $completions[$command]\n}";
    let map: Vec<String> = options
        .iter()
        .map(|(option, word)| format!("&'--{option}'='{word}'"))
        .collect();
    script.mend(
        "    var command = 'update'\n",
        &format!(
            "    fn names {{|kind|\n        try {{ e:update complete $kind 2>/dev/null | from-lines }} catch e {{ }}\n    }}\n    \
             var valued = [{}]\n    var command = 'update'\n",
            map.join(" ")
        ),
    )?;
    script.mend(
        END,
        "    if (has-key $valued $words[-2]) {\n        names $valued[$words[-2]]\n    } else {\n        $completions[$command]\n    }\n}",
    )?;
    for place in places {
        let block = format!("        &'update;{}'= {{\n", place.path.join(";"));
        script.mend(
            &block,
            &format!("{block}            names {}\n", place.word),
        )?;
    }
    Ok(())
}

fn powershell(script: &mut Script, options: &[(&str, &str)], places: &[Place]) -> Result<()> {
    let names = |word: &str| {
        format!(
            "& update complete {word} 2>$null | ForEach-Object {{ [CompletionResult]::new($_, $_, [CompletionResultType]::ParameterValue, $_) }}"
        )
    };
    let map: Vec<String> = options
        .iter()
        .map(|(option, word)| format!("'--{option}' = '{word}'"))
        .collect();
    script.mend(
        "    $completions = @(switch ($command) {\n",
        &format!(
            "    $valued = @{{ {} }}\n    $before = @($commandElements | Where-Object {{ $_.Extent.EndOffset -lt $cursorPosition }})[-1]\n    \
             if ($null -ne $before -and $valued.ContainsKey(\"$before\")) {{\n        \
             return @({}) | Where-Object {{ $_.CompletionText -like \"$wordToComplete*\" }}\n    }}\n\n    \
             $completions = @(switch ($command) {{\n",
            map.join("; "),
            names("$valued[\"$before\"]")
        ),
    )?;
    for place in places {
        let block = format!("        'update;{}' {{\n", place.path.join(";"));
        script.mend(
            &block,
            &format!("{block}            {}\n", names(place.word)),
        )?;
    }
    Ok(())
}
