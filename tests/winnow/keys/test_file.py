"""The file of keys: what stands in it, what is refused, and how it is followed."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tenacious import happens
from unreadable import without_descriptors

from winnow.errors import UnauthenticatedError
from winnow.keys.file import KeyFileError, load_gate, read_keys, watch_key_file, write_keys
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of, new_token
from winnow.policy.rates import Rate

TOKEN = new_token()
KEY = Key(
    name="alice",
    digest=digest_of(TOKEN),
    scopes=frozenset({Scope.ASK}),
    rate=Rate(5, 10),
    created="2026-01-01",
)
OTHER = Key(name="bob", digest=digest_of(new_token()), scopes=frozenset(Scope))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_written_keys_are_read_back(path: Path) -> None:
    write_keys(path, [KEY, OTHER])
    assert read_keys(path) == (KEY, OTHER)
    assert TOKEN not in path.read_text()


def entry(**changed: object) -> dict[str, object]:
    return {"name": "a", "sha256": "0" * 64, "scopes": ["ask"]} | changed


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "keys": []}',
        '{"version": 1, "keys": {}}',
        "[" * 100_000,
        *(
            json.dumps({"version": 1, "keys": keys})
            for keys in (
                ["a"],
                [entry(name="")],
                [entry(name="two words")],
                [entry(name="a" * 65)],
                [entry(sha256="secret")],
                [entry(scopes=[])],
                [entry(scopes="ask")],
                [entry(scopes=["everything"])],
                [entry(rate=0)],
                [entry(rate=-1)],
                [entry(rate=float("nan"))],
                [entry(rate=float("inf"))],
                [entry(rate=10**400)],
                [entry(rate=1e-320)],
                [entry(rate=[])],
                [entry(rate=1, burst=0.5)],
                [entry(rate=1, burst=10**400)],
                [entry(token="secret")],
                [entry(), entry(sha256="1" * 64)],
                [entry(), entry(name="b")],
            )
        ),
    ],
)
def test_a_file_that_holds_no_keys_is_an_error_that_names_it(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(KeyFileError, match=r"keys\.json is not a key file"):
        read_keys(path)


def test_a_missing_file_is_an_error_that_names_the_command_for_it(path: Path) -> None:
    with pytest.raises(KeyFileError, match="winnow keys new"):
        read_keys(path)


def test_a_rate_without_a_burst_has_one_of_a_second(path: Path) -> None:
    path.write_text(
        json.dumps(
            {"version": 1, "keys": [entry(rate=5), entry(name="b", sha256="1" * 64, rate=0.1)]}
        )
    )
    assert [key.rate for key in read_keys(path)] == [Rate(5, 5), Rate(0.1, 1)]


async def test_keys_come_and_go_while_a_front_serves(path: Path) -> None:
    write_keys(path, [KEY])
    gate, file = load_gate(path)
    following = asyncio.create_task(watch_key_file(file, gate, interval=0.0))
    newer = new_token()
    write_keys(path, [Key(name="carol", digest=digest_of(newer), scopes=frozenset({Scope.ASK}))])

    def good(token: str) -> bool:
        with contextlib.suppress(UnauthenticatedError):
            return bool(gate.admit(Scope.ASK, token))
        return False

    await happens(lambda: good(newer))
    assert not good(TOKEN)
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("{")])
async def test_a_damaged_file_leaves_the_keys_unchanged(path: Path, damage: object) -> None:
    write_keys(path, [KEY])
    gate, file = load_gate(path)
    assert callable(damage)
    damage(path)
    with capture_logs() as logged:
        assert not file.refresh()
        assert not file.refresh()
    assert [line["log_level"] for line in logged] == ["error"]
    assert gate.admit(Scope.ASK, TOKEN)
    write_keys(path, [])
    assert file.refresh()
    assert file.content == ()


async def test_a_key_that_was_removed_is_refused_once_the_file_can_be_read(path: Path) -> None:
    """Strangers may have taken the last descriptor at the moment of the change."""
    removed = Key(name=KEY.name, digest=KEY.digest, scopes=KEY.scopes)
    write_keys(path, [removed, OTHER])
    gate, file = load_gate(path)
    write_keys(path, [OTHER])
    with without_descriptors():
        assert not file.refresh()
    following = asyncio.create_task(watch_key_file(file, gate, interval=0.0))

    def refused() -> bool:
        with contextlib.suppress(UnauthenticatedError):
            return not gate.admit(Scope.ASK, TOKEN)
        return True

    await happens(refused)
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following
