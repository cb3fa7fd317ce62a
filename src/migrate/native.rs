//! Versions past the catalog: what the application's own migrator made of a home, and whether that may be written.
//!
//! A person allows it (`--native-migrate`), the descriptor says how it is started ([`Migrator`](crate::app::Migrator)),
//! and it works on a copy (`home/migrator`). What it made passes what our own steps pass, and more, because
//! nobody declared what it may change: the version is the expected one, what is protected is as it was, no value
//! became empty, no comment is lost. Anything else leaves the home as it is.

use std::collections::BTreeMap;

use super::proof::{Leaf, leaves};
use super::{
    After, Catalog, Change, Evaluation, FileChange, HomeOutcome, HomeView, Stamp, StepOutcome,
    StepResult, evaluate,
};
use crate::app::{App, Format, Migrator};
use crate::digest::sha256;
use crate::document::{self, Document, Key, Path, Value};

/// What stands for it among a home's steps.
pub const STEP: &str = "native";

/// The files that a migrator is given: the bytes of those that are there.
pub type Before = BTreeMap<String, Vec<u8>>;

/// The files that a migrator may change, and how each is written.
pub(super) fn files<'a>(
    app: &'a App,
    migrator: &'a Migrator,
) -> impl Iterator<Item = (&'a str, Format)> {
    let config = (app.config.file.as_str(), app.config.format);
    let others = migrator.files.iter();
    std::iter::once(config).chain(others.map(|(name, format)| (name.as_str(), *format)))
}

/// What our own steps leave to the application's migrator: the evaluation so far, and the bytes that it starts from.
pub(super) struct Start {
    /// With our own steps applied, as far as they lead.
    pub(super) evaluation: Evaluation,
    /// New bytes of our own steps.
    pub(super) made: After,
}

/// Takes a home as far as our own steps lead: they keep what others lose. An evaluation that ends it if there is
/// nothing left to do, or nothing that may be done.
pub(super) fn start(
    app: &App,
    catalog: &Catalog,
    view: &dyn HomeView,
    found: Evaluation,
) -> Result<Start, Box<Evaluation>> {
    let from = found.from.as_deref().and_then(|from| from.parse().ok());
    if from.is_some() && from == found.to {
        // The application stamped it, and whoever allows its migrator believes its stamp.
        return Err(Box::new(found.concluded(HomeOutcome::Current, "")));
    }
    if from > found.to {
        let reason = format!(
            "the file has {}, the code expects {}",
            from.unwrap_or_default(),
            found.to.unwrap_or_default()
        );
        return Err(Box::new(
            found.concluded(HomeOutcome::NewerThanCode, reason),
        ));
    }
    if from >= Some(catalog.newest()) {
        return Ok(Start {
            evaluation: found,
            made: After::new(),
        });
    }
    let (evaluation, made) = evaluate(app, catalog, view, Some(catalog.newest()));
    let evaluation = Evaluation {
        to: found.to,
        ..evaluation
    };
    match evaluation.outcome {
        HomeOutcome::Migrated => Ok(Start { evaluation, made }),
        _ => Err(Box::new(evaluation)),
    }
}

/// The evaluation of a home whose migrator made `after` of `before`; both hold files by their names.
pub(super) fn judge(
    app: &App,
    migrator: &Migrator,
    view: &dyn HomeView,
    Start {
        mut evaluation,
        made,
    }: Start,
    (before, after): (&Before, &Before),
) -> (Evaluation, After) {
    let refused = |evaluation: Evaluation, why: String| {
        let reason = format!("its own migrator: {why}");
        (
            evaluation.concluded(HomeOutcome::Failed, reason),
            After::new(),
        )
    };
    let mut written = made;
    for (name, format) in files(app, migrator) {
        let pair = (before.get(name), after.get(name));
        match compare(app, migrator, (name, format), pair, evaluation.to) {
            Ok(changes) => add(&mut evaluation.changes, changes),
            Err(why) => return refused(evaluation, format!("{name}: {why}")),
        }
        if let (Some(old), Some(new)) = pair
            && old != new
        {
            written.insert(name.to_owned(), new.clone());
        }
    }
    let mut obstacles = Vec::new();
    evaluation.files.clear();
    for (name, bytes) in &written {
        let old = match view.read(name) {
            Ok(old) => old,
            Err(error) => return refused(evaluation, format!("{name}: {error}")),
        };
        obstacles.extend(view.unwritable(name));
        evaluation.files.push(FileChange {
            path: name.clone(),
            sha256_before: old.as_deref().map(sha256),
            sha256_after: sha256(bytes),
        });
    }
    evaluation.steps.push(StepResult {
        id: STEP.into(),
        checksum: sha256(migrator.command.join("\0").as_bytes()),
        result: StepOutcome::Applied,
    });
    if obstacles.is_empty() {
        (evaluation.concluded(HomeOutcome::Migrated, ""), written)
    } else {
        let reason = obstacles.join("; ");
        (
            evaluation.concluded(HomeOutcome::ReadOnly, reason),
            After::new(),
        )
    }
}

/// Adds later changes to earlier ones: a value that both change was what it was before the first, and is what it is
/// after the last.
fn add(changes: &mut Vec<Change>, later: Vec<Change>) {
    for mut change in later {
        if let Some(at) = changes.iter().position(|known| known.path == change.path) {
            change.before = changes.remove(at).before;
        }
        if change.before != change.after {
            changes.push(change);
        }
    }
}

/// What changed in one file, or why it must not be written.
fn compare(
    app: &App,
    migrator: &Migrator,
    (name, format): (&str, Format),
    (before, after): (Option<&Vec<u8>>, Option<&Vec<u8>>),
    to: Option<u32>,
) -> Result<Vec<Change>, String> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return Ok(Vec::new()),
        (Some(_), None) => return Err("it was removed".into()),
        (None, Some(_)) => return Err("it was not there before, and is not made".into()),
    };
    let parse = |bytes: &[u8]| document::parse(format, bytes).map_err(|why| why.to_string());
    let (old, new) = (parse(before)?, parse(after)?);
    let is_config = name == app.config.file;
    if is_config {
        let stamp = Stamp::of(new.value().field(&app.config.version));
        if stamp.version() != to || to.is_none() {
            return Err(format!("it left version {stamp}"));
        }
        for key in &migrator.protected {
            if old.value().field(key) != new.value().field(key) {
                return Err(format!("it changed {key}, which is protected"));
            }
        }
    }
    if let Some(lost) = lost_comment(format, (old.as_ref(), before), (new.as_ref(), after)) {
        let shown = crate::screen::text(&lost);
        return Err(format!("it lost a comment: {shown}"));
    }
    let mut changes = Vec::new();
    for leaf in leaves(old.value(), new.value()) {
        if !is_empty(leaf.before) && leaf.after.is_some() && is_empty(leaf.after) {
            return Err(format!("it emptied {}", leaf.path));
        }
        changes.push(change(app, name, &leaf));
    }
    Ok(changes)
}

fn change(app: &App, name: &str, leaf: &Leaf<'_>) -> Change {
    let is_config = name == app.config.file;
    let stamp = Path(vec![Key::Name(app.config.version.clone())]);
    let step = if is_config && leaf.path == stamp {
        "version"
    } else {
        STEP
    };
    let path = match (is_config, leaf.path.is_root()) {
        (true, _) => leaf.path.to_string(),
        (false, true) => name.to_owned(),
        (false, false) => format!("{name}: {}", leaf.path),
    };
    Change {
        step: step.into(),
        path,
        before: leaf.before.map(Value::to_json),
        after: leaf.after.map(Value::to_json),
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Str(text)) => text.is_empty(),
        Some(Value::List(items)) => items.is_empty(),
        Some(Value::Map(entries)) => entries.is_empty(),
        Some(_) => false,
    }
}

/// A comment of the first text that the second has not, or has less often.
fn lost_comment(
    format: Format,
    before: (&dyn Document, &[u8]),
    after: (&dyn Document, &[u8]),
) -> Option<String> {
    if matches!(format, Format::Json | Format::Text) {
        return None;
    }
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for comment in comments(after) {
        *left.entry(comment).or_default() += 1;
    }
    comments(before).into_iter().find(|comment| {
        let Some(count) = left.get_mut(comment).filter(|count| **count > 0) else {
            return true;
        };
        *count -= 1;
        false
    })
}

/// Every comment, from its sign to the end of its line: what stands behind a `#` that is part of no value.
fn comments((document, bytes): (&dyn Document, &[u8])) -> Vec<String> {
    let Ok(scalars) = document.scalars() else {
        return Vec::new();
    };
    let mut scalars = scalars.iter().map(|scalar| &scalar.at).peekable();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        // A value that begins here is passed over as a whole.
        while scalars.next_if(|own| own.end <= at).is_some() {}
        if let Some(own) = scalars.next_if(|own| own.start <= at && at < own.end) {
            at = own.end;
            continue;
        }
        if bytes[at] == b'#' {
            let rest = &bytes[at..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            found.push(String::from_utf8_lossy(line).trim_end().to_owned());
            at += line.len();
        } else {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::MemoryHome;

    const OLD: &str = "# mine\n_config_version: 50\na: 1 # one\nb: [x]\nsecurity: {x: 1}\n";

    fn judged(after: &str) -> (Evaluation, After) {
        let app = App::builtin(crate::app::DEFAULT).expect("it is part of the program");
        let migrator = Migrator {
            command: vec!["stand-in".into()],
            files: BTreeMap::from([(".env".into(), Format::Env)]),
            protected: vec!["security".into()],
            limit_secs: 1,
        };
        let start = Start {
            evaluation: Evaluation::new(HomeOutcome::BeyondCatalog, "", Some(51)),
            made: After::new(),
        };
        let file =
            |text: &str| Before::from([("config.yaml".to_owned(), text.as_bytes().to_vec())]);
        let view = MemoryHome {
            files: file(OLD),
            ..MemoryHome::default()
        };
        judge(&app, &migrator, &view, start, (&file(OLD), &file(after)))
    }

    #[test]
    fn what_it_made_is_taken_with_every_change_named() {
        let new = OLD.replace("50", "51").replace("a: 1", "a: 2");
        let (evaluation, after) = judged(&new);
        assert_eq!(
            (evaluation.outcome, evaluation.reason.as_str()),
            (HomeOutcome::Migrated, "")
        );
        let named: Vec<_> = evaluation
            .changes
            .iter()
            .map(|change| (change.step.as_str(), change.path.as_str()))
            .collect();
        assert_eq!(named, [("version", "_config_version"), ("native", "a")]);
        assert_eq!(after["config.yaml"], new.as_bytes());
        assert_eq!(evaluation.steps[0].id, STEP);
    }

    #[test]
    fn what_breaks_a_promise_is_refused_with_its_reason() {
        let new = OLD.replace("50", "51");
        for (after, why) in [
            (OLD.to_owned(), "it left version 50"),
            (OLD.replace("50", "52"), "it left version 52"),
            (new.replace("# mine\n", ""), "it lost a comment: # mine"),
            (new.replace(" # one", ""), "it lost a comment: # one"),
            (new.replace("[x]", "[]"), "it emptied b"),
            (
                new.replace("{x: 1}", "{x: 2}"),
                "it changed security, which is protected",
            ),
            (
                new.replace("security", "safety"),
                "it changed security, which is protected",
            ),
            (new.replace("a: 1", "a: ["), "config.yaml: line"),
        ] {
            let (evaluation, written) = judged(&after);
            assert_eq!(evaluation.outcome, HomeOutcome::Failed, "{after}");
            assert!(evaluation.reason.contains(why), "{}", evaluation.reason);
            assert!(written.is_empty());
        }
    }

    #[test]
    fn a_sign_inside_a_value_is_no_comment() {
        let text = "a: 'x # y' # z\nb: \"#1\"\nc: a#b\n# d\n";
        let document = document::parse(Format::Yaml, text.as_bytes()).expect("valid");
        assert_eq!(
            comments((document.as_ref(), text.as_bytes())),
            ["# z", "# d"]
        );
    }
}
