//! One receipt of a fleet from those of its machines. Pure: texts in, a [`FleetReceipt`] out.
//!
//! The inventory is the work list, as the plan is of a run: every machine of it has a row, which starts as
//! `missing` and is `clean` only by its own receipt, whose rows are judged again. A receipt belongs to the
//! machine that its file is named after (`web1.json`), else to the one whose host name it bears; one that
//! belongs to none, a second one, or one that was copied under another name makes the fleet unclean, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Receipt, SCHEMA, VerdictOutcome};

/// The receipt of a fleet of machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReceipt {
    /// Version of this format; that of the receipts in it.
    pub schema: u32,
    /// Always `fleet`: what tells it from the receipt of one machine.
    pub kind: String,
    /// When it was made (RFC 3339, UTC).
    pub merged_at: String,
    /// One row a machine of the inventory, in its order, then what belongs to none.
    pub machines: Vec<MachineRow>,
    /// What it all comes to.
    pub verdict: FleetVerdict,
}

/// What is known of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineRow {
    /// Its name in the inventory; of a receipt that belongs to none, its own host name.
    pub name: String,
    /// How it stands.
    pub outcome: MachineOutcome,
    /// Why.
    pub reason: String,
    /// The file that said so.
    pub file: Option<String>,
    /// Its receipt, if it can be read.
    pub receipt: Option<Receipt>,
}

/// How a machine stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MachineOutcome {
    /// Its receipt says clean, and its rows do.
    Clean,
    /// Its receipt says anything else.
    NotClean,
    /// It sent none.
    Missing,
    /// Its receipt is older than what was asked for.
    Stale,
    /// It sent more than one, or the one of another machine.
    Duplicate,
    /// It is no machine of the inventory.
    Foreign,
    /// Its receipt is of a newer format.
    NewerSchema,
    /// What it sent is not a receipt of a run.
    Damaged,
}

impl MachineOutcome {
    /// The word in receipts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::NotClean => "not-clean",
            Self::Missing => "missing",
            Self::Stale => "stale",
            Self::Duplicate => "duplicate",
            Self::Foreign => "foreign",
            Self::NewerSchema => "newer-schema",
            Self::Damaged => "damaged",
        }
    }
}

/// What a fleet comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetVerdict {
    /// `clean` only if every machine is.
    pub outcome: VerdictOutcome,
    /// The status that the command ends with.
    pub exit_status: u8,
    /// How many machines there are of each outcome.
    pub counts: BTreeMap<String, usize>,
}

/// A file that was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its name, as it is shown.
    pub file: String,
    /// The name without its folder and `.json`.
    pub stem: String,
    /// What it holds, or why it could not be read.
    pub content: Result<Vec<u8>, String>,
}

/// Makes the fleet's receipt. `now` is RFC 3339; a receipt that began longer than `max_age` before is stale.
#[must_use]
pub fn merge(
    inventory: &[String],
    sent: Vec<Sent>,
    now: &str,
    max_age: Option<Duration>,
) -> FleetReceipt {
    let mut machines: Vec<MachineRow> = inventory.iter().map(|name| missing(name)).collect();
    let mut extra = Vec::new();
    let mut runs: BTreeMap<String, String> = BTreeMap::new();
    for one in sent {
        let mut row = judge(&one, now, max_age);
        if let Some(receipt) = &row.receipt
            && let Some(first) = runs.insert(receipt.run_id.clone(), one.file.clone())
        {
            row.outcome = MachineOutcome::Duplicate;
            row.reason = format!("{first} holds the same run {}", receipt.run_id);
        }
        let Some(place) = place(inventory, &one.stem, row.receipt.as_ref()) else {
            if row.outcome != MachineOutcome::Duplicate {
                row.outcome = MachineOutcome::Foreign;
                row.reason = "no machine of the inventory has this name".into();
            }
            extra.push(row);
            continue;
        };
        row.name.clone_from(&inventory[place]);
        if machines[place].outcome == MachineOutcome::Missing
            && row.outcome != MachineOutcome::Duplicate
        {
            machines[place] = row;
        } else {
            // Which of the two is true is not ours to say: the second is a row of its own.
            if row.outcome != MachineOutcome::Duplicate {
                row.outcome = MachineOutcome::Duplicate;
                row.reason = format!(
                    "{} was sent for it, too",
                    machines[place].file.as_deref().unwrap_or("another receipt")
                );
            }
            extra.push(row);
        }
    }
    machines.append(&mut extra);
    let mut counts = BTreeMap::new();
    for row in &machines {
        *counts.entry(row.outcome.word().to_owned()).or_insert(0) += 1;
    }
    // An empty inventory proves nothing.
    let clean = !inventory.is_empty()
        && machines
            .iter()
            .all(|row| row.outcome == MachineOutcome::Clean);
    FleetReceipt {
        schema: SCHEMA,
        kind: "fleet".into(),
        merged_at: now.to_owned(),
        machines,
        verdict: FleetVerdict {
            outcome: if clean {
                VerdictOutcome::Clean
            } else {
                VerdictOutcome::NotClean
            },
            exit_status: u8::from(!clean),
            counts,
        },
    }
}

fn missing(name: &str) -> MachineRow {
    MachineRow {
        name: name.to_owned(),
        outcome: MachineOutcome::Missing,
        reason: "it sent no receipt".into(),
        file: None,
        receipt: None,
    }
}

/// Which machine a receipt belongs to: the one that its file is named after, else the one whose name it bears.
fn place(inventory: &[String], stem: &str, receipt: Option<&Receipt>) -> Option<usize> {
    let of = |name: &str| inventory.iter().position(|machine| machine == name);
    of(stem).or_else(|| {
        let host = receipt?.host.hostname.as_str();
        of(host).or_else(|| {
            // `web1` and `web1.example.org` are one machine if only one can be meant.
            let short = |name: &str| name.split('.').next().map(str::to_owned);
            let mut alike =
                (0..inventory.len()).filter(|index| short(&inventory[*index]) == short(host));
            alike.next().filter(|_| alike.next().is_none())
        })
    })
}

fn judge(sent: &Sent, now: &str, max_age: Option<Duration>) -> MachineRow {
    let row = |outcome, reason: String, receipt: Option<Receipt>| MachineRow {
        name: receipt.as_ref().map_or_else(
            || sent.stem.clone(),
            |receipt| receipt.host.hostname.clone(),
        ),
        outcome,
        reason,
        file: Some(sent.file.clone()),
        receipt,
    };
    let bytes = match &sent.content {
        Ok(bytes) => bytes,
        Err(error) => return row(MachineOutcome::Damaged, error.clone(), None),
    };
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            return row(
                MachineOutcome::Damaged,
                format!("it is not JSON: {error}"),
                None,
            );
        }
    };
    let schema = value.get("schema").and_then(Value::as_u64);
    let is_newer = schema.is_some_and(|schema| schema > u64::from(SCHEMA));
    let receipt = match Receipt::parse(value) {
        Ok(receipt) => receipt,
        Err(error) if is_newer => return row(MachineOutcome::NewerSchema, error.to_string(), None),
        Err(error) => return row(MachineOutcome::Damaged, error.to_string(), None),
    };
    if receipt.run_id.parse::<uuid::Uuid>().is_err() {
        let reason = format!("it is a {}, not the record of a run", receipt.run_id);
        return row(MachineOutcome::Damaged, reason, Some(receipt));
    }
    let (outcome, reason) = stand(&receipt, now, max_age);
    row(outcome, reason, Some(receipt))
}

fn stand(receipt: &Receipt, now: &str, max_age: Option<Duration>) -> (MachineOutcome, String) {
    if receipt.finished_at.is_none() {
        return (
            MachineOutcome::NotClean,
            "its run has no end: it is at work, or was killed".into(),
        );
    }
    match receipt.verdict.outcome {
        VerdictOutcome::Clean if !receipt.is_clean() => {
            return (
                MachineOutcome::NotClean,
                "it says clean, and its rows do not".into(),
            );
        }
        VerdictOutcome::Clean => {}
        other => return (MachineOutcome::NotClean, other.word().replace('-', " ")),
    }
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    if let Some(limit) = max_age {
        let age = match (time(&receipt.started_at), time(now)) {
            (Some(began), Some(now)) => Duration::try_from(now.duration_since(began)).ok(),
            _ => None,
        };
        // A time that cannot be read, or lies ahead, is no proof of youth.
        if age.is_none_or(|age| age > limit) {
            return (
                MachineOutcome::Stale,
                format!("its run began at {}", receipt.started_at),
            );
        }
    }
    (MachineOutcome::Clean, String::new())
}

/// The machines of an inventory: one name a line, Ansible's INI, or Ansible's JSON or YAML.
///
/// # Errors
/// What is wrong with it, and where.
pub fn machines(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let trimmed = text.trim_start();
    if trimmed.starts_with('{') {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        of_value(&value, &mut names);
    } else if text
        .lines()
        .any(|line| line.trim_end().ends_with(':') && !line.trim_start().starts_with('#'))
    {
        let value: Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        of_value(&value, &mut names);
    } else {
        of_lines(text, &mut names)?;
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if names.is_empty() {
        return Err("it names no machine".into());
    }
    Ok(names)
}

/// Groups hold `hosts`, as a list or as a mapping, and `children`; `_meta.hostvars` names every host.
fn of_value(value: &Value, names: &mut Vec<String>) {
    let Value::Object(entries) = value else {
        return;
    };
    for (key, inner) in entries {
        match (key.as_str(), inner) {
            ("hosts" | "hostvars", Value::Object(hosts)) => names.extend(hosts.keys().cloned()),
            ("hosts", Value::Array(hosts)) => {
                names.extend(hosts.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            ("vars", _) => {}
            (_, inner) => of_value(inner, names),
        }
    }
}

fn of_lines(text: &str, names: &mut Vec<String>) -> Result<(), String> {
    let mut lists_hosts = true;
    for (index, line) in text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(group) = line.strip_prefix('[') {
            let group = group
                .strip_suffix(']')
                .ok_or(format!("line {}: a group has no end", index + 1))?;
            // `[web:children]` lists groups, `[web:vars]` variables.
            lists_hosts = !group.contains(':');
            continue;
        }
        if lists_hosts && let Some(name) = line.split_whitespace().next() {
            expand(name, names).map_err(|error| format!("line {}: {error}", index + 1))?;
        }
    }
    Ok(())
}

/// `web[01:03]` stands for three machines, `db-[a:c]` as well.
fn expand(pattern: &str, names: &mut Vec<String>) -> Result<(), String> {
    let Some((before, rest)) = pattern.split_once('[') else {
        names.push(pattern.to_owned());
        return Ok(());
    };
    let wrong = || format!("{pattern:?} is not a range of names");
    let (range, after) = rest.split_once(']').ok_or_else(wrong)?;
    let mut parts = range.split(':');
    let (Some(first), Some(last)) = (parts.next(), parts.next()) else {
        return Err(wrong());
    };
    let step: usize = parts
        .next()
        .map_or(Ok(1), |step| step.parse().map_err(|_| wrong()))?;
    let values: Vec<String> = match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(low), Ok(high)) if low <= high && high - low < 100_000 => (low..=high)
            .map(|number| format!("{number:0width$}", width = first.len()))
            .collect(),
        _ => match (single(first), single(last)) {
            (Some(low), Some(high)) if low <= high => (low..=high).map(String::from).collect(),
            _ => return Err(wrong()),
        },
    };
    for value in values.into_iter().step_by(step.max(1)) {
        expand(&format!("{before}{value}{after}"), names)?;
    }
    Ok(())
}

fn single(text: &str) -> Option<char> {
    let mut letters = text.chars();
    letters
        .next()
        .filter(|letter| letter.is_ascii_alphabetic() && letters.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_is_read_in_every_form_that_ansible_has() {
        let ini = "# hosts\nalone\n[web]\nweb[01:03] ansible_user=x # three\ndb-[a:b]\n[all:vars]\nx=1\n[both:children]\nweb\n";
        let expected = ["alone", "web01", "web02", "web03", "db-a", "db-b"];
        assert_eq!(machines(ini).unwrap(), expected);
        assert_eq!(machines("a\nb\na\n").unwrap(), ["a", "b"]);
        let json = r#"{"_meta":{"hostvars":{"a":{"hosts":"x"},"b":{}}},"all":{"children":["web"]},"web":{"hosts":["b","c"]}}"#;
        assert_eq!(machines(json).unwrap(), ["a", "b", "c"]);
        let yaml = "all:\n  hosts:\n    a:\n  children:\n    web:\n      hosts:\n        b:\n          ansible_host: 192.0.2.1\n      vars:\n        hosts: x\n";
        assert_eq!(machines(yaml).unwrap(), ["a", "b"]);
        assert!(machines("[web]\n").is_err());
        assert!(machines("[web\na\n").is_err());
        assert!(machines("web[1\n").is_err());
    }
}
