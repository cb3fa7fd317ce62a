//! What the audit chain says of homes and runtimes.

use serde_json::{Value, json};

use super::Journal;
use crate::receipt::{HomeRow, RuntimeRow};
use crate::state::audit::{Event, HOST};
use crate::state::scope::Scope;

impl Journal<'_> {
    pub(super) fn event(&self, tenant: &str, kind: &str, payload: Value) -> Event {
        Event {
            run: self.run.clone(),
            tenant: tenant.to_owned(),
            kind: kind.to_owned(),
            payload,
        }
    }

    pub(super) fn home(&self, row: &HomeRow, kind: &str) -> Event {
        let files: Vec<Value> = row
            .files
            .iter()
            .map(|file| {
                json!({"after": file.sha256_after, "before": file.sha256_before, "path": file.path})
            })
            .collect();
        let tenant = self.scopes.get(&row.id).map_or(HOST, Scope::tenant_id);
        self.event(
            tenant,
            kind,
            json!({
                "done": row.done,
                "files": files,
                "from": row.from,
                "home": row.id,
                "outcome": row.outcome,
                "reason": row.reason,
                "to": row.to,
            }),
        )
    }

    pub(super) fn runtime(&self, row: &RuntimeRow, kind: &str) -> Event {
        let life = |life: Option<&crate::receipt::Life>| {
            life.map(|life| {
                let incarnation = &life.incarnation;
                format!(
                    "{}:{}:{}",
                    incarnation.boot_id, incarnation.pid, incarnation.start_ticks
                )
            })
        };
        let tenant = row
            .homes
            .first()
            .and_then(|home| self.scopes.get(home))
            .map_or(HOST, Scope::tenant_id);
        self.event(
            tenant,
            kind,
            json!({
                "action": row.action,
                "after": life(row.after.as_ref()),
                "before": life(row.before.as_ref()),
                "outcome": row.outcome,
                "reason": row.reason,
                "runtime": row.id,
            }),
        )
    }
}
