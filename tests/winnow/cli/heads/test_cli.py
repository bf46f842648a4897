"""`winnow heads`: a store looked after at a keyboard and by programs."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from small_heads import small_head

from winnow.__main__ import main
from winnow.heads.store import open_store


class Shell:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], store: str) -> None:
        self._capsys, self.store = capsys, store

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code, stdout and stderr of `winnow heads …`."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["heads", *arguments])
        shown = self._capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    def says(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, "")
        return " ".join(out.split())

    def json(self, *arguments: str, code: int = 0) -> Any:
        ended, out, err = self.run(*arguments, "--json")
        assert (ended, err) == (code, "")
        return json.loads(out)

    def fails(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        return " ".join(err.split())


@pytest.fixture
def shell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setenv("COLUMNS", "200")
    return Shell(capsys, str(tmp_path / "store"))


def publish(shell: Shell, tmp_path: Path, head: str, version: int = 1, **fields: Any) -> str:
    directory = small_head(tmp_path / f"{head}-{version}", head, version, **fields)
    return shell.says("publish", str(directory), "--store", shell.store)


def test_a_head_is_published_listed_and_replaced(shell: Shell, tmp_path: Path) -> None:
    assert "intent: version 1 of" in publish(shell, tmp_path, "intent")
    shown = publish(shell, tmp_path, "intent", 2, accuracy={"accuracy": 91.25})
    assert "previously version 1" in shown
    publish(shell, tmp_path, "names", kind="token")
    found = shell.json("list", shell.store)
    assert found["encoder"]["name"] == "small"
    intent, names = found["heads"]
    assert (intent["id"], intent["version"], intent["versions"]) == ("intent", 2, [1, 2])
    assert (intent["kind"], intent["labels"], names["kind"]) == ("sequence", 3, "token")
    assert intent["accuracy"] == {"accuracy": 91.25}
    assert intent["bytes"] > 100
    assert (intent["pinned"], intent["moved_to"], intent["fault"]) == (False, "", "")
    shown = shell.says("list", shell.store)
    assert "2 heads of encoder small" in shown
    assert "accuracy 91.2" in shown


def test_heads_are_pinned_and_rolled_back(shell: Shell, tmp_path: Path) -> None:
    for version in (1, 2):
        publish(shell, tmp_path, "intent", version)
    store = ("--store", shell.store)
    assert "; pinned" in shell.says("pin", "intent", *store)
    assert shell.json("unpin", "intent", *store)["pinned"] is False
    assert shell.json("rollback", "intent", *store)["version"] == 1
    assert shell.json("rollback", "intent", "--version", "2", *store)["version"] == 2
    assert "has no version 9" in shell.fails("rollback", "intent", "--version", "9", *store)
    assert "no head 'nobody'" in shell.fails("pin", "nobody", *store)


def test_a_version_can_be_stored_for_later(shell: Shell, tmp_path: Path) -> None:
    publish(shell, tmp_path, "intent")
    second = str(small_head(tmp_path / "b", version=2))
    assert "not served yet" in shell.says("publish", second, "--later", "--store", shell.store)
    (listed,) = shell.json("list", shell.store)["heads"]
    assert (listed["version"], listed["versions"]) == (1, [1, 2])
    third = str(small_head(tmp_path / "c", "other"))
    shell.says("publish", third, "--later", "--store", shell.store)
    assert shell.json("list", shell.store)["heads"][1]["version"] == 0


def test_bad_heads_are_refused_by_name(shell: Shell, tmp_path: Path) -> None:
    publish(shell, tmp_path, "intent")
    cases = {
        "nowhere": "is this a head?",
        str(small_head(tmp_path / "x", "x", model=b"no")): "cannot be opened as a model",
        str(small_head(tmp_path / "y", "y", fingerprint="f" * 16)): "another store",
        str(small_head(tmp_path / "z", says=1)): "publish this head as version 2",
    }
    for directory, complaint in cases.items():
        assert complaint in shell.fails("publish", directory, "--store", shell.store)


def test_verifying_names_every_version_that_is_bad(shell: Shell, tmp_path: Path) -> None:
    for head, version in (("intent", 1), ("intent", 2), ("names", 1), ("topic", 1)):
        publish(shell, tmp_path, head, version)
    store = ("--store", shell.store)
    assert "4 of 4 versions of 3 heads good" in shell.says("verify", *store)
    root = Path(shell.store)
    (root / "intent" / "1" / "head.onnx").write_bytes(b"damaged")
    (root / "names" / "1" / "head.json").unlink()
    (root / "topic" / "current.json").write_text("{}")
    found = shell.json("verify", *store, code=1)
    faults = {(each["id"], each["version"]): each["fault"] for each in found["versions"]}
    assert not found["ok"]
    assert "damaged" in faults["intent", 1]
    assert "head.json" in faults["names", 1]
    assert "current.json" in faults["topic", 0]
    assert faults["intent", 2] == faults["topic", 1] == ""
    code, out, _ = shell.run("verify", *store)
    assert code == 1
    assert all(name in out for name in ("head intent version 1", "head names version 1"))
    assert shell.run("verify", "intent", *store)[0] == 1
    listed = {each["id"]: each["fault"] for each in shell.json("list", shell.store)["heads"]}
    assert listed["intent"] == ""
    assert "head.json" in listed["names"]
    assert "current.json" in listed["topic"]


def test_a_head_that_is_not_there_does_not_verify(shell: Shell, tmp_path: Path) -> None:
    publish(shell, tmp_path, "intent")
    code, out, _ = shell.run("verify", "nobody", "--store", shell.store)
    assert code == 1
    assert "no head 'nobody'" in out


def test_a_store_that_is_not_there_is_said(shell: Shell, tmp_path: Path) -> None:
    assert "nowhere/ for heads: No such" in shell.fails("list", str(tmp_path / "nowhere"))
    assert "cannot use nonsense://place" in shell.fails("verify", "--store", "nonsense://place")


def test_an_empty_store_says_how_to_fill_it(shell: Shell) -> None:
    Path(shell.store).mkdir()
    assert "winnow heads publish" in shell.says("list", shell.store)
    assert shell.json("list", shell.store)["heads"] == []


def test_verifying_a_remote_store_reads_it_again(shell: Shell, tmp_path: Path) -> None:
    """A good copy in the cache hides no damage."""
    shell.store = f"memory://{uuid.uuid4().hex}"
    publish(shell, tmp_path, "intent")
    store = open_store(shell.store)
    assert store.fetch("intent", 1).manifest.id == "intent"
    assert shell.json("verify", "--store", shell.store)["ok"]
    import fsspec

    fsspec.filesystem("memory").pipe_file(f"{shell.store}/intent/1/head.onnx", b"damaged")
    assert not shell.json("verify", "--store", shell.store, code=1)["ok"]


def test_a_head_in_place_of_a_store_is_named(shell: Shell, tmp_path: Path) -> None:
    publish(shell, tmp_path, "intent")
    assert "is a head, not a store of heads" in shell.fails("list", str(tmp_path / "intent-1"))
    assert f"name the store, {shell.store}" in shell.fails("list", f"{shell.store}/intent")


def test_a_version_that_is_not_there_is_told_with_those_that_are(
    shell: Shell, tmp_path: Path
) -> None:
    publish(shell, tmp_path, "intent")
    said = shell.fails("rollback", "intent", "--store", shell.store)
    assert f"name one with --version; {shell.store} holds version 1" in said
    publish(shell, tmp_path, "intent", 2)
    said = shell.fails("rollback", "intent", "--version", "7", "--store", shell.store)
    assert "no version 7" in said
    assert "holds versions 1, 2" in said
