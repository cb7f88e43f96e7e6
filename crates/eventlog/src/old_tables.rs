//! The tables of the database in which earlier versions kept all sessions.
//!
//! A step never changes: each was released, and there is none behind the last.

use crate::schema::Tables;

/// That database.
pub(crate) const DATABASE: Tables = Tables {
    file: "acpd.db",
    // `acpd` in ASCII.
    application_id: 0x6163_7064,
    steps: STEPS,
    touched: &["session", "info", "block", "garbage"],
};

/// Its newest form.
pub(crate) const DATABASE_FORMAT: i64 = STEPS.len() as i64;

const STEPS: &[&str] = &[
    "
    CREATE TABLE session (
        row INTEGER PRIMARY KEY AUTOINCREMENT CHECK (row < 134217728),
        id TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        cwd TEXT NOT NULL,
        owner TEXT,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0,
        last_seq INTEGER NOT NULL DEFAULT 0 CHECK (last_seq < 68719476736)
    );
    CREATE INDEX session_by_time ON session (updated_ms DESC, id);
    CREATE INDEX session_by_agent ON session (agent, updated_ms DESC, id);
    CREATE INDEX session_by_cwd ON session (cwd, updated_ms DESC, id);
    CREATE INDEX session_by_owner ON session (owner) WHERE owner IS NOT NULL;
    -- Apart from the session, whose row is rewritten with every commit.
    CREATE TABLE info (session INTEGER PRIMARY KEY, info BLOB NOT NULL);
    CREATE TABLE block (
        key INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL,
        -- Bytes of the records before they were packed; 0 when they stand as they are.
        unpacked INTEGER NOT NULL DEFAULT 0, records BLOB NOT NULL
    );
    -- Deleted sessions whose blocks are still being removed, a piece at a time.
    CREATE TABLE garbage (session INTEGER PRIMARY KEY);
",
    "
    ALTER TABLE session ADD COLUMN created_by TEXT;
    -- Most sessions have none, and no list asks for those.
    CREATE INDEX session_by_creator ON session (created_by, updated_ms DESC, id) WHERE created_by IS NOT NULL;
",
    "
    -- In the row that every commit rewrites anyway: it changes with each turn.
    ALTER TABLE session ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
",
    "
    -- What hosts computed from the events up to `seq`. Its rows may be deleted at any time: that costs time only.
    CREATE TABLE checkpoint (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, bytes BLOB NOT NULL);
",
    "
    -- Sessions that a host is writing in pieces, before they are any. Their numbers are those of rows that are not there.
    CREATE TABLE partial (session INTEGER PRIMARY KEY, owner TEXT NOT NULL, last_seq INTEGER NOT NULL);
",
    "
    -- The words of each turn, once each; neither the text nor the places of words are kept (ADR 0016).
    CREATE VIRTUAL TABLE search USING fts5 (
        words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
    );
    -- A row of `search`, and the event that its turn is known by, as a block's key.
    CREATE TABLE turn (id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, at_ms INTEGER NOT NULL);
    -- The event up to which a session is indexed; one that is not here is not indexed at all.
    CREATE TABLE searched (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
",
    "
    -- Events that a subscriber is still to be told of. Numbers are never used twice.
    CREATE TABLE outbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        subscriber TEXT NOT NULL, session INTEGER NOT NULL, seq INTEGER NOT NULL
    );
    CREATE INDEX outbox_by_subscriber ON outbox (subscriber, number);
    CREATE INDEX outbox_by_session ON outbox (session);
",
    "
    -- Bytes of its agent's output that a session has handled. In the row that every commit rewrites anyway.
    ALTER TABLE session ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
",
    "
    -- What a session was given and has not begun with, by numbers of its host.
    CREATE TABLE waiting (
        session INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (session, number)
    );
",
];
