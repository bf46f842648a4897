"""`winnow keys`: a file of keys made and changed at a keyboard."""

import json
import threading
from pathlib import Path

import pytest

from winnow.__main__ import main
from winnow.cli.keys import changing
from winnow.cli.keys.changing import add_key
from winnow.keys.file import KeyFileError, read_keys
from winnow.keys.gate import Gate
from winnow.keys.key import Scope
from winnow.policy.rates import Rate


class Shell:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], file: Path) -> None:
        self._capsys, self.file = capsys, file

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code, stdout and stderr of `winnow keys …`."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["keys", *arguments, "--file", str(self.file)])
        shown = self._capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    return Shell(capsys, tmp_path / "keys.json")


def test_a_new_key_opens_the_gate_until_it_is_removed(shell: Shell) -> None:
    code, out, err = shell.run("new", "alice", "--scope", "ask", "--scope", "feed", "--rate", "5")
    token = out.strip()
    assert (code, err.startswith(f"added key alice to {shell.file}; this is its token")) == (
        0,
        True,
    )
    assert token not in shell.file.read_text()
    (key,) = read_keys(shell.file)
    assert (key.scopes, key.rate) == (frozenset({Scope.ASK, Scope.FEED}), Rate(5, 5))
    assert Gate([key]).admit(Scope.ASK, token) == key
    removed = f"removed key alice from {shell.file}\n"
    assert shell.run("remove", "alice") == (0, "", removed)
    assert read_keys(shell.file) == ()


def test_a_list_shows_names_and_no_secrets(shell: Shell) -> None:
    token = shell.run("new", "alice", "--scope", "ask", "--rate", "5", "--burst", "9")[1].strip()
    code, out, _ = shell.run("list")
    assert code == 0
    assert "alice" in out
    (key,) = read_keys(shell.file)
    as_json = shell.run("list", "--json")[1]
    assert json.loads(as_json) == [
        {
            "name": "alice",
            "id": key.id,
            "scopes": ["ask"],
            "rate": 5,
            "burst": 9,
            "created": key.created,
            "tenant": None,
        }
    ]
    assert token not in out + as_json
    assert key.digest not in out + as_json


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("new", "alice", "--scope", "ask"), 1, "there is a key alice"),
        (("new", "two words", "--scope", "ask"), 1, "'two words' is not 1 to 64 letters"),
        (("new", "bob"), 2, "--scope"),
        (("new", "bob", "--scope", "all"), 2, "'all' is not one of"),
        (("new", "bob", "--scope", "ask", "--burst", "2"), 2, "--burst needs --rate"),
        (("new", "bob", "--scope", "ask", "--tenant", ""), 2, "the name is empty"),
        (
            ("new", "bob", "--scope", "ask", "--rate", "0"),
            1,
            "rate of bob is 0, but must be 1e-06 to",
        ),
        (("remove", "bob"), 1, "there is no key 'bob'"),
    ],
)
def test_a_refused_change_changes_no_file(
    shell: Shell, arguments: tuple[str, ...], code: int, said: str
) -> None:
    shell.run("new", "alice", "--scope", "ask")
    before = shell.file.read_bytes()
    ended, out, err = shell.run(*arguments)
    assert (ended, out) == (code, "")
    assert said in err
    assert shell.file.read_bytes() == before


def test_a_token_goes_to_a_new_file_that_only_its_owner_reads(shell: Shell) -> None:
    out = shell.file.parent / "alice.token"
    code, printed, err = shell.run("new", "alice", "--scope", "ask", "--out", str(out))
    assert (code, printed) == (0, "")
    assert err == f"added key alice to {shell.file}; its token is in {out}\n"
    assert out.stat().st_mode & 0o777 == 0o600
    assert Gate(read_keys(shell.file)).admit(Scope.ASK, out.read_text().strip()).name == "alice"
    assert sorted(each.name for each in out.parent.iterdir()) == ["alice.token", "keys.json"]


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_the_same_command_again_leaves_the_token_as_it_was(shell: Shell, name: str) -> None:
    """So that a key is never lost: its name is taken, and so is its file."""
    out = shell.file.parent / "alice.token"
    shell.run("new", "alice", "--scope", "ask", "--out", str(out))
    before = out.read_bytes(), shell.file.read_bytes()
    code, printed, err = shell.run("new", name, "--scope", "ask", "--out", str(out))
    assert (code, printed) == (1, "")
    assert ("there is a key alice" if name == "alice" else f"{out} exists") in err
    assert (out.read_bytes(), shell.file.read_bytes()) == before


def test_a_token_whose_key_cannot_be_kept_is_not_left_behind(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyFileError("cannot write keys.json: no space left on device")

    monkeypatch.setattr(changing, "write_keys", fail)
    out = shell.file.parent / "alice.token"
    code, _, err = shell.run("new", "alice", "--scope", "ask", "--out", str(out))
    assert (code, "no space left" in err) == (1, True)
    assert list(shell.file.parent.iterdir()) == []


def test_a_token_that_cannot_be_written_makes_no_key(shell: Shell) -> None:
    out = shell.file.parent / "nowhere" / "alice.token"
    code, _, err = shell.run("new", "alice", "--scope", "ask", "--out", str(out))
    assert (code, f"cannot write {out}: No such file" in err) == (1, True)
    assert not shell.file.exists()


def test_a_directory_that_is_not_there_is_said(shell: Shell) -> None:
    shell.file = shell.file.parent / "nowhere" / "keys.json"
    said = f"cannot open {shell.file.parent}, the directory of keys.json: No such file"
    assert said in shell.run("new", "alice", "--scope", "ask")[2]


def test_keys_made_at_once_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    names = [f"client-{number}" for number in range(8)]
    making = [
        threading.Thread(target=add_key, args=(file, name, [Scope.ASK], None)) for name in names
    ]
    for each in making:
        each.start()
    for each in making:
        each.join()
    assert sorted(key.name for key in read_keys(file)) == names
