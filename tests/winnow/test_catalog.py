"""The catalog of named indexes, and its file."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from winnow.assignment import AssignmentFile
from winnow.catalog import CatalogFile, IndexAssignmentFile
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import with_copy
from winnow.errors import ArtefactError, InvalidRequestError, NotFoundError, WinnowError

DOCS = CatalogIndex(index_id="a1", shards=1, holders={0: ("a",)})
NEXT = CatalogIndex(index_id="b2", shards=2, bundle="/bundles/b", snapshots="s3://b/docs")
NODES = {"a": "a:9000"}
BOTH = Catalog().with_index("docs-1", DOCS, NODES).with_index("docs-2", NEXT)


def test_an_alias_stands_for_one_index_after_another() -> None:
    """The generation of a name grows with each switch, also with the switch back."""
    first = BOTH.with_alias("docs", "docs-1")
    second = first.with_alias("docs", "docs-2")
    back = second.with_alias("docs", "docs-1")
    resolved = [each.resolve("docs") for each in (first, second, back)]
    assert [each.name for each in resolved] == ["docs-1", "docs-2", "docs-1"]
    assert [each.generation for each in resolved] == [3, 4, 5]
    assert back.resolve("docs-2").generation == 2
    assert back.with_alias("docs", "docs-1") is back
    assert BOTH.with_alias("default", "docs-2").resolve("").name == "docs-2"


def test_a_dropped_index_is_not_found_and_comes_back_within_its_grace_time() -> None:
    dropped = BOTH.with_dropped("docs-1", delete_at=100.0)
    with pytest.raises(NotFoundError, match="there is no index 'docs-1'"):
        dropped.resolve("docs-1")
    assert not dropped.is_deleted("a1", now=99.0)
    assert dropped.with_restored("docs-1", now=80.0).resolve("docs-1").index.index_id == "a1"
    with pytest.raises(InvalidRequestError, match="nodes may have begun to delete it"):
        dropped.with_restored("docs-1", now=99.0)
    with pytest.raises(InvalidRequestError, match="the grace time of docs-1 has ended"):
        dropped.with_restored("docs-1", now=100.0)
    # not a field "index": `winnow indexes alias` has no --on, by which errors name that field
    with pytest.raises(InvalidRequestError, match=r"^name: docs-1 was dropped: restore"):
        dropped.with_alias("docs", "docs-1")
    assert dropped.is_deleted("a1", now=100.0)
    assert not dropped.is_deleted("b2", now=100.0)


def test_the_name_of_a_deleted_index_is_free_and_its_id_is_not() -> None:
    """A node that was down may still have the files of the deleted index."""
    expired = BOTH.with_dropped("docs-1", delete_at=100.0).without_expired(100.0)
    assert expired.is_deleted("a1", now=0.0)
    assert BOTH.without_expired(100.0) is BOTH
    again = expired.with_index("docs-1", CatalogIndex(index_id="c3", shards=1))
    assert again.resolve("docs-1").index.index_id == "c3"
    with pytest.raises(InvalidRequestError, match="index a1 was deleted"):
        expired.with_index("other", DOCS)


ALIASED = BOTH.with_alias("docs", "docs-1")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda: BOTH.with_alias("docs-2", "docs-1"), "docs-2 is the name of an index"),
        (lambda: BOTH.with_alias("docs", "docs-3"), "the indexes are docs-1, docs-2"),
        (lambda: BOTH.with_alias("Docs", "docs-1"), "'Docs' is no valid name"),
        (lambda: BOTH.with_index("docs-3", DOCS), "the catalog has index a1 already"),
        (lambda: ALIASED.with_index("docs", CatalogIndex(index_id="c", shards=1)), "docs is taken"),
        (lambda: ALIASED.with_dropped("docs-1", 1.0), "the alias docs stands for docs-1"),
        (lambda: BOTH.with_restored("docs-1", 1.0), "docs-1 was not dropped"),
        (lambda: BOTH.with_holders("docs-1", {0: ("x",)}, {}), "has node x, which is not among"),
    ],
)
def test_an_impossible_change_is_refused(change: Callable[[], Catalog], problem: str) -> None:
    with pytest.raises((InvalidRequestError, NotFoundError), match=problem):
        change()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda stored: stored.with_renamed("docs-1", "docs-2"), "docs-2 is taken: choose another"),
        (
            lambda stored: stored.with_dropped("other", 0.0),
            "there is no index 'other': the indexes",
        ),
        (
            lambda stored: stored.with_index(
                "new", CatalogIndex(index_id="c3", shards=1, holders={0: ("x",)})
            ),
            "shard 0 has node x, which is not",
        ),
    ],
)
def test_a_refused_change_names_the_file_and_no_field(
    change: Callable[[Catalog], Catalog], problem: str, tmp_path: Path
) -> None:
    """The error is read at a terminal, by somebody who has changed several catalogs."""
    file = CatalogFile(str(tmp_path / "indexes.json"))
    file.change(lambda _: BOTH)
    with pytest.raises(WinnowError) as refused:
        file.change(lambda stored: change(stored or BOTH))
    assert str(refused.value).startswith(f"{tmp_path}/indexes.json stays unchanged: {problem}")
    assert file.read() == BOTH


def test_the_assignment_of_an_index_changes_only_with_its_nodes() -> None:
    """A node that never had shards of an index is not asked before they are restored."""
    assignment = BOTH.assignment("docs-1")
    assert assignment is not None
    other = CatalogIndex(index_id="c3", shards=1, holders={0: ("c",)})
    assert ALIASED.with_index("other", other, {"c": "c:9000"}).assignment("docs-1") == assignment
    moved = BOTH.with_holders("docs-1", {0: ("b",)}, {"b": "b:9000"}).assignment("docs-1")
    assert moved is not None
    assert (moved.holders, moved.version) == ({0: ("b",)}, 3)
    assert BOTH.assignment("docs-2") is None


def test_the_file_holds_the_whole_catalog(tmp_path: Path) -> None:
    file = CatalogFile(str(tmp_path / "new" / "indexes.json"))
    assert file.read() is None
    whole = ALIASED.with_dropped("docs-2", 5.0).without_expired(6.0)
    assert file.change(lambda _: whole) == whole
    assert file.read() == whole
    (path := tmp_path / "new" / "indexes.json").write_bytes(path.read_bytes().replace(b"a1", b"a2"))
    with pytest.raises(ArtefactError, match="its checksum does not match"):
        file.read()


def test_a_catalog_and_an_assignment_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """Neither is damaged, so nobody should delete it."""
    url, other = str(tmp_path / "indexes.json"), str(tmp_path / "assignment.json")
    CatalogFile(url).change(lambda _: BOTH)
    assignment = IndexAssignmentFile(url, "docs-1").read()
    assert assignment is not None
    AssignmentFile(other).change(lambda _: assignment)
    with pytest.raises(
        ArtefactError, match=r"indexes.json is a catalog .*: name the index by --on"
    ):
        AssignmentFile(url).read()
    with pytest.raises(ArtefactError, match=r"assignment.json is the assignment of one index"):
        CatalogFile(other).read()


def test_a_file_of_a_newer_version_is_not_called_damaged(tmp_path: Path) -> None:
    """Deleting or restoring it would lose what the newer version wrote."""
    file = CatalogFile(str(tmp_path / "indexes.json"))
    file.change(lambda _: ALIASED)
    path = tmp_path / "indexes.json"
    changes: dict[str, Callable[[dict[str, Any]], None]] = {
        "quotas": lambda content: content.update(quotas={}),
        r"indexes\[docs-1\]\.tier": lambda content: content["indexes"]["docs-1"].update(tier=1),
        r"aliases\[docs\]\.by": lambda content: content["aliases"]["docs"].update(by="x"),
    }
    for place, change in changes.items():
        content = json.loads(path.read_text())
        del content["checksum"]
        change(content)
        newer = tmp_path / "newer.json"
        encoded = json.dumps(content, sort_keys=True).encode()
        newer.write_text(json.dumps({**content, "checksum": sha256(encoded).hexdigest()}))
        with pytest.raises(ArtefactError, match=f"newer version, since it has the field {place}:"):
            CatalogFile(str(newer)).read()


def test_a_renamed_index_is_found_by_both_names() -> None:
    """Requests by its old name go on, in the same generation. The next index may get an alias."""
    renamed = ALIASED.with_renamed("docs-1", "docs-0")
    assert renamed.resolve("docs-0").index.index_id == "a1"
    assert renamed.resolve("docs").name == "docs-0"
    before, after = ALIASED.resolve("docs-1"), renamed.resolve("docs-1")
    assert (after.name, after.generation) == ("docs-0", before.generation)
    assert renamed.with_alias("docs-1", "docs-2").resolve("docs-1").name == "docs-2"
    copied = with_copy(BOTH, "copy", CatalogIndex(index_id="c3", shards=1), "docs-1")
    for name in ("copy", "docs-1"):
        with pytest.raises(InvalidRequestError, match=f"{name} is a copy or has one"):
            copied.with_renamed(name, "new")
    with pytest.raises(InvalidRequestError, match="docs-2 is taken"):
        BOTH.with_renamed("docs-1", "docs-2")
    with pytest.raises(NotFoundError, match="docs-1 is an alias of docs-0: name the index"):
        renamed.with_dropped("docs-1", 0.0)
