-- Schema 1: the audit chain and the cells.
CREATE TABLE audit (
    seq      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    run      TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    payload  TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash     TEXT NOT NULL UNIQUE
) STRICT;
CREATE INDEX audit_run ON audit (run, seq);
CREATE INDEX audit_kind ON audit (kind, seq);
CREATE TABLE cells (
    tenant TEXT PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
