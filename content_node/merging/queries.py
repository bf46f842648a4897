"""The SQL statements of a merge. Databases: `base`, `log`, and `main`, which is written. Pure."""

from winnow.content_node.shard.schema import TENANT_OF_ID

BASE = "CREATE TEMP VIEW old AS SELECT * FROM base.passages"
BASE_AS_BUILT = """
CREATE TEMP VIEW old AS SELECT *, 0 AS sequence, NULL AS version FROM base.passages
"""
"""Before format 3, passages had no sequence number: there were no writes."""
SPAN = """
CREATE TEMP TABLE span (sequence INTEGER PRIMARY KEY, id TEXT, version INTEGER, put INTEGER)
"""
"""The writes of the range, without their large columns."""
READ_SPAN = """
INSERT INTO span SELECT sequence, id, version, vector IS NOT NULL FROM log.writes
    WHERE sequence > :after AND sequence <= :upto
"""
SPAN_SIZE = "SELECT count(*) FROM span"
DELETED_TENANTS = "SELECT count(*) FROM span WHERE NOT put AND unicode(substr(id, -1)) = 30"
"""Deletions of whole tenants: see `winnow.domain.tenant.id_of_whole_tenant`."""
LATEST = """
CREATE TEMP TABLE latest AS SELECT id, max(sequence) AS sequence FROM span GROUP BY id
"""
BY_ID = "CREATE UNIQUE INDEX temp.by_id ON latest (id)"
BY_SEQUENCE = "CREATE UNIQUE INDEX temp.by_sequence ON latest (sequence)"
DEAD = """
CREATE TEMP TABLE dead AS SELECT row FROM old WHERE id IN (SELECT id FROM latest) ORDER BY row
"""
KEPT = """
CREATE TEMP TABLE kept AS SELECT row AS old, row FROM old
    WHERE row NOT IN (SELECT row FROM dead) ORDER BY row
"""
ADDED = "CREATE TEMP TABLE added (sequence INTEGER PRIMARY KEY, row INTEGER)"
ADD = """
INSERT INTO added SELECT * FROM (
    SELECT sequence, :rows + row_number() OVER (ORDER BY sequence) - 1 AS row FROM span WHERE put
) WHERE sequence IN (SELECT sequence FROM latest) ORDER BY sequence
"""
"""Every put has one row, as in the memory of the node; overwritten puts leave holes."""
PUTS = "SELECT count(*) FROM span WHERE put"
NUMBER = f"""
CREATE TEMP TABLE numbered AS
    SELECT is_added, name, row_number() OVER (ORDER BY {TENANT_OF_ID}, is_added, name) - 1 AS row
    FROM (
        SELECT 0 AS is_added, kept.old AS name, id FROM kept CROSS JOIN old ON old.row = kept.old
        UNION ALL SELECT 1, sequence, id FROM added JOIN span USING (sequence)
    )
"""  # noqa: S608
"""New numbers of rows: of each tenant first the kept rows, then the added ones."""
NUMBER_KEPT = """
UPDATE kept SET row = numbered.row FROM numbered WHERE name = kept.old AND NOT is_added
"""
NUMBER_ADDED = """
UPDATE added SET row = numbered.row FROM numbered WHERE name = added.sequence AND is_added
"""
COPY_KEPT = """
INSERT INTO main.passages (row, id, title, text, metadata, title_tokens, text_tokens, text_offsets,
    vector, sequence, version)
    SELECT kept.row, id, title, text, metadata, title_tokens, text_tokens, text_offsets,
        vector, sequence, version
    FROM kept CROSS JOIN old ON old.row = kept.old
"""
"""A cross join reads the left table first: both are in the order of rows."""
COPY_ADDED = """
INSERT INTO main.passages (row, id, title, text, metadata, title_tokens, text_tokens, text_offsets,
    vector, sequence, version)
    SELECT added.row, id, title, text, iif(metadata = '', '{}', metadata), title_tokens,
        text_tokens, text_offsets, vector, added.sequence, version
    FROM added CROSS JOIN log.writes AS new ON new.sequence = added.sequence
    WHERE added.sequence > :after AND added.sequence <= :upto
"""
KEEP_TOMBSTONES = """
INSERT INTO main.tombstones SELECT id, version FROM base.tombstones
    WHERE id NOT IN (SELECT id FROM latest)
"""
ADD_TOMBSTONES = """
INSERT INTO main.tombstones SELECT id, version FROM span
    WHERE sequence IN (SELECT sequence FROM latest) AND NOT put AND version IS NOT NULL
"""
VECTORS = "SELECT row, vector FROM main.passages ORDER BY row"
PUT_VECTORS = """
SELECT vector FROM log.writes
    WHERE sequence > :after AND sequence <= :upto AND vector IS NOT NULL ORDER BY sequence
"""
