"""`winnow indexes` adds, drops and renames indexes of the catalog."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from winnow.catalog import CatalogFile
from winnow.cli.commands import main
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import with_copy, with_hold
from winnow.packaged import default_bundle
from winnow.telemetry.progress import StageProgress

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["indexes", *words, "--indexes", str(tmp_path / "indexes.json")])
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_indexes_are_created_renamed_dropped_and_restored(
    run: Run, indexes: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("list")[1].startswith("no indexes: ")
    for shards in (2, 3):
        with StageProgress() as progress:
            url = str(tmp_path / str(shards))
            take_snapshot(indexes[shards], url, progress, lambda: datetime.now(UTC))
    nodes = ["--node", "a=host-a:9000", "--node", "b=host-b:9000"]
    created = run("create", "docs-1", "--snapshot", "2", *nodes)
    assert created[0] == 0
    assert created[1].startswith("catalog 1: index docs-1, 2 shards on 2 nodes\nnodes and front")
    bundle = ["--bundle", str(tmp_path), "--replicas", "2"]
    assert run("create", "docs-2", "--snapshot", str(tmp_path / "3"), *nodes, *bundle)[0] == 0
    assert run("alias", "docs", "docs-1")[1] == "catalog 3: alias docs -> docs-1\n"
    switched = run("alias", "docs", "docs-2")[1]
    assert switched.endswith("to switch back: winnow indexes alias docs docs-1\n")
    assert run("drop", "docs-1")[1].startswith("catalog 5: index docs-1 dropped")
    rows = json.loads(run("list", "--json")[1])
    assert [(each["name"], each["aliases"], each["nodes"]) for each in rows] == [
        ("docs-1", [], ["a", "b"]),
        ("docs-2", ["docs"], ["a", "b"]),
    ]
    assert [bool(each["deleted_at"]) for each in rows] == [True, False]
    assert run("restore", "docs-1")[1] == "catalog 6: index docs-1 is served again\n"
    code, _, err = run("drop", "docs-2")
    assert (code, "the alias docs stands for docs-2" in err) == (1, True)
    for grace in ("nan", "-1", "1e12"):
        code, _, err = run("drop", "docs-1", "--grace", grace)
        assert (code, "is not between 0 and 87600 hours" in err) == (2, True)
    catalog = CatalogFile(str(tmp_path / "indexes.json")).read()
    assert catalog is not None
    assert catalog.nodes == {"a": "host-a:9000", "b": "host-b:9000"}
    assert catalog.indexes["docs-1"].snapshots == str(tmp_path / "2")
    assert catalog.indexes["docs-2"].bundle == str(tmp_path)


def test_a_rebuild_that_cannot_begin_or_resume_says_what_to_change(
    run: Run, tmp_path: Path
) -> None:
    """No node runs: what can be checked without nodes is checked first."""
    url, bundle = str(tmp_path / "docs"), str(default_bundle())
    run("create", "docs-1", "--empty", "--snapshot", url, "--node", "a=host-a:9000")
    rebuild = ["rebuild", "docs-1", "--bundle", bundle, "--snapshot", url]
    code, _, err = run(*rebuild)
    assert (code, f"{tmp_path}/indexes.json stays unchanged: {url} has the snapshot" in err) == (
        1,
        True,
    )
    assert "of another index: give another --snapshot" in err
    copy = CatalogIndex(index_id="c", shards=1, bundle=bundle, holders={0: ("a",)})
    file = CatalogFile(str(tmp_path / "indexes.json"))
    file.change(lambda before: with_copy(before or Catalog(), "docs-2", copy, "docs-1"))
    code, _, err = run(*rebuild, "--shards", "7")
    assert (code, "docs-2 was begun with 1 shard: omit --shards" in err) == (1, True)
    said = run("alias", "docs-next", "docs-2")[1]
    assert "docs-2 is a copy of docs-1, and takes no writes of callers" in said
    assert said.endswith(
        "docs-1 has no alias: winnow indexes alias ALIAS docs-1\n"
        "to switch: winnow indexes alias ALIAS docs-2\n"
    )
    run("alias", "docs-next", "--remove")
    other = str(tmp_path / "other")
    code, _, err = run("rebuild", "docs-2", "--bundle", bundle, "--snapshot", other)
    assert (code, "docs-2 is a copy of docs-1, and gets no writes" in err) == (1, True)
    assert not Path(other).exists()
    assert run("drop", "docs-2", "--grace", "0")[1].endswith("nodes delete it now\n")


def test_an_index_is_created_empty(run: Run, tmp_path: Path) -> None:
    """A second one needs another URL, because nodes restore from the newest snapshot."""
    create = ["create", "docs", "--snapshot", str(tmp_path / "docs"), "--node", "a=host-a:9000"]
    code, _, err = run(*create, "--shards", "3")
    assert (code, "--shards: it needs --empty" in err) == (2, True)
    code, out, _ = run(*create, "--empty", "--shards", "3")
    assert (code, out.splitlines()[0]) == (0, "catalog 1: index docs, 3 shards on 1 node")
    code, _, err = run("create", "other", *create[2:], "--empty")
    assert (code, "has snapshots already" in err) == (1, True)
    code, _, err = run("create", "other", *create[2:], "--empty", "--shards", "3", "--tenants")
    assert (code, "has snapshots already" in err) == (1, True), "it is of an index without tenants"
    code, _, err = run(
        "create", "docs", "--snapshot", str(tmp_path / "new"), *create[4:], "--empty"
    )
    assert (code, "docs is taken" in err, (tmp_path / "new").exists()) == (1, True, False)


def test_an_interrupted_switch_is_given_up(run: Run, tmp_path: Path) -> None:
    """The list shows that writes wait, until the alias is pointed to the present index again."""
    old, new = (CatalogIndex(index_id=each, shards=1, holders={0: ("a",)}) for each in "12")
    present = Catalog().with_index("old", old, {"a": "a:9000"}).with_alias("docs", "old")
    copying = with_copy(present, "new", new, "old")
    held = with_hold(copying, "new", copying.version)
    CatalogFile(str(tmp_path / "indexes.json")).change(lambda _: held)
    rows = json.loads(run("list", "--json")[1])
    found = [(each["name"], each["copy_of"], each["is_held"]) for each in rows]
    assert found == [("new", "old", False), ("old", None, True)]
    assert "writes wait for the switch of an alias" in " ".join(run("list")[1].split())
    assert run("alias", "docs", "old") == (0, "catalog 5: alias docs -> old\n", "")
    assert not any(each["is_held"] for each in json.loads(run("list", "--json")[1]))
