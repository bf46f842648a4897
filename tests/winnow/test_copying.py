"""Who takes the writes while an index is copied into another one and replaced by it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from winnow.catalog import CatalogFile
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import (
    index_writes,
    with_copy,
    with_hold,
    with_progress,
    with_replaced_source,
    with_run,
    without_hold,
)
from winnow.domain.index_copy import CopyLogs, IndexCopy
from winnow.errors import (
    ArtefactError,
    IdentityError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)

OLD = CatalogIndex(index_id="a1", shards=1, holders={0: ("a",)})
NEW = CatalogIndex(index_id="b2", shards=2, holders={0: ("a",), 1: ("a",)})
ALIASED = Catalog().with_index("old", OLD, {"a": "a:9000"}).with_alias("docs", "old")
COPYING = with_copy(ALIASED, "new", NEW, "old")
RUN = COPYING.copies["new"].run
HELD = with_hold(COPYING, "new", RUN)

REPLACED = with_replaced_source(HELD, "new", RUN, HELD.version, {0: 4, 1: 5})
COPIED_AGAIN = with_copy(REPLACED, "newer", CatalogIndex(index_id="c3", shards=1), "new")
HELD_AGAIN = with_hold(COPIED_AGAIN, "newer", COPIED_AGAIN.version)
TWICE = with_replaced_source(HELD_AGAIN, "newer", COPIED_AGAIN.version, HELD_AGAIN.version, {0: 9})
"""`old` is a copy of `new`, which is a copy of `newer`."""


def closed(catalog: Catalog) -> dict[str, int]:
    """Since when each index takes no writes."""
    return {name: index_writes(catalog, name).closed_since for name in catalog.indexes}


def test_one_index_takes_the_writes_and_none_while_its_source_is_held() -> None:
    assert closed(COPYING) == {"old": 0, "new": RUN}
    assert closed(HELD) == {"old": HELD.version, "new": RUN}
    assert closed(REPLACED) == {"old": REPLACED.version, "new": 0}
    assert REPLACED.resolve("docs").name == "new"
    assert REPLACED.resolve("docs").generation == REPLACED.version
    back = IndexCopy(
        source="new",
        run=REPLACED.version,
        positions={0: 4, 1: 5},
        filled=(0, 1),
        was_replaced=True,
    )
    assert REPLACED.copies == {"old": back}


def test_the_nodes_of_the_source_keep_the_writes_that_a_copy_lacks() -> None:
    progressed = with_progress(COPYING, "new", RUN, {0: 7}, {0})
    assert index_writes(COPYING, "old").copied == {"new": {}}
    assert index_writes(progressed, "old").copied == {"new": {0: 7}}
    assert index_writes(progressed, "new").source == "old"


def test_a_new_run_ends_earlier_ones_and_their_hold() -> None:
    again = with_run(HELD, "new")
    assert closed(again) == {"old": 0, "new": again.version}
    with pytest.raises(IdentityError, match="another process has begun to copy new"):
        with_progress(again, "new", RUN, {0: 7}, set())
    with pytest.raises(IdentityError):
        with_replaced_source(again, "new", RUN, HELD.version, {})


def test_a_source_that_takes_writes_again_is_not_replaced() -> None:
    released = without_hold(HELD, "old")
    assert closed(released)["old"] == 0
    assert without_hold(released, "old") is released
    with pytest.raises(IdentityError):
        with_replaced_source(released, "new", RUN, HELD.version, {})
    with pytest.raises(UnavailableError, match="old takes writes again"):
        with_replaced_source(COPYING, "new", RUN, HELD.version, {})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda: COPYING.with_alias("docs", "new"), "new is a copy of old, and may lack writes"),
        (lambda: TWICE.with_alias("docs", "old"), "may lack writes: point docs to new first"),
        (lambda: COPYING.without_alias("docs").with_dropped("old", 9.0), "drop the copy first"),
        (lambda: COPYING.with_holders("old", {1: ("a",), 2: ("a",)}, {}), "before a shard is"),
        (lambda: HELD.with_holders("old", {0: ("b",)}, {}), "an alias of old is being switched"),
        (lambda: with_copy(COPYING, "next", NEW, "new"), "new is a copy of old"),
    ],
)
def test_changes_that_would_lose_writes_are_refused(
    change: Callable[[], Catalog], problem: str
) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        change()


def test_a_dropped_copy_stays_closed_and_its_source_does_not() -> None:
    """A front that does not know of the drop must not write to the copy."""
    dropped = HELD.with_dropped("new", 900.0)
    assert closed(dropped) == {"old": 0, "new": RUN}
    with pytest.raises(NotFoundError, match="new is not a copy"):
        with_run(dropped, "new")
    assert with_run(dropped.with_restored("new", 9.0), "new").copies["new"].source == "old"
    alone = dropped.without_alias("docs").with_dropped("old", 900.0).with_restored("new", 9.0)
    assert closed(alone)["new"] == 0
    assert dropped.without_expired(900.0).copies == {}


def test_a_copy_that_was_dropped_meanwhile_replaces_nothing() -> None:
    """Not even after it was restored: its source has taken writes in between."""
    dropped = HELD.with_dropped("new", 900.0)
    restored = dropped.with_restored("new", 9.0)
    for catalog, error in ((dropped, NotFoundError), (restored, IdentityError)):
        with pytest.raises(error):
            with_replaced_source(catalog, "new", RUN, HELD.version, {0: 4, 1: 5})
        with pytest.raises(error):
            with_hold(catalog, "new", RUN)
    assert closed(restored) == {"old": 0, "new": restored.version}


def test_an_index_is_not_copied_from_a_copy() -> None:
    """It would wait for ever: a copy gets no writes by itself."""
    with pytest.raises(InvalidRequestError, match="new is a copy of newer, and gets no writes"):
        with_run(TWICE, "old")


def test_a_shard_that_was_restored_from_a_snapshot_is_recognised() -> None:
    logs = CopyLogs().with_source({0: "", 1: "b"}, "old", "new").with_own({0: "c"}, "new")
    logs = logs.with_source({0: "a", 1: "b"}, "old", "new")  # the first write creates a log
    for restored in ({0: ""}, {1: "other"}):
        with pytest.raises(ArtefactError, match=r"of old was restored .* so new cannot follow it"):
            logs.with_source(restored, "old", "new")
    with pytest.raises(ArtefactError, match="shard 0 of new was restored"):
        logs.with_own({0: "other"}, "new")


def test_a_copy_may_have_an_alias_of_its_own() -> None:
    """It is asked by this name before it replaces its source."""
    assert COPYING.with_alias("docs-next", "new").resolve("docs-next").name == "new"


def test_a_catalog_with_copies_survives_its_file(tmp_path: Path) -> None:
    file = CatalogFile(str(tmp_path / "indexes.json"))
    logs = CopyLogs(source={0: "a"}, own={1: "b"})
    stored = with_progress(COPYING, "new", RUN, {0: 7}, {0}, logs)
    assert file.change(lambda _: stored) == stored
    assert '"format": 2' in (tmp_path / "indexes.json").read_text()
    file.change(lambda _: ALIASED)
    assert '"format": 1' in (tmp_path / "indexes.json").read_text()
