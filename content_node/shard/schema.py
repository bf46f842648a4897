"""The tables of a shard's database, and an expression for their ids."""

SCHEMA = """
CREATE TABLE passages (
    row INTEGER PRIMARY KEY,      -- the label in the graph; a row may hold nothing any more
    id TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL DEFAULT 0,  -- the write that put it; 0: it was there when built
    version INTEGER,              -- of that write; NULL: it had none
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,       -- JSON
    title_tokens BLOB NOT NULL,   -- little-endian uint32, no special tokens
    text_tokens BLOB NOT NULL,    -- little-endian uint32, no special tokens
    text_offsets BLOB NOT NULL,   -- little-endian uint32 pairs: characters of each text token
    vector BLOB NOT NULL          -- little-endian float32
);
CREATE TABLE tombstones (         -- deletions with a version: no older put may undo them
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;
"""

TENANT_OF_ID = "substr(id, 1, instr(id, char(31)))"
"""The beginning of an id that names the tenant, with the separator; empty without a tenant.

New rows are numbered in this order, so that the vectors of a tenant are read at once. See
`winnow.domain.tenant`.
"""
