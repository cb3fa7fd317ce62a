-- Schema 2: requests, and the jobs that come of them.
CREATE TABLE jobs (
    id       INTEGER PRIMARY KEY,
    event    TEXT NOT NULL,
    stage    TEXT NOT NULL,
    subject  TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    cell     TEXT NOT NULL,
    profile  TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    attempt  INTEGER NOT NULL,
    worker   TEXT,
    queued_at   INTEGER NOT NULL,
    finished_at INTEGER,
    UNIQUE (event, stage, subject)
) STRICT;
CREATE INDEX jobs_open ON jobs (state, stage, subject);
CREATE TABLE requests (
    id          TEXT PRIMARY KEY,
    content     TEXT NOT NULL,
    run         TEXT NOT NULL,
    worker      TEXT NOT NULL,
    admitted_at INTEGER NOT NULL,
    finished_at INTEGER,
    exit_status INTEGER,
    receipt     BLOB
) STRICT, WITHOUT ROWID;
