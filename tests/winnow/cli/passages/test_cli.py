"""`winnow passages` against a front over gRPC."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from in_process import EndedCommand, InProcess
from passage_front import FakeFeed, PassageFront
from serving_thread import served_in_thread
from structlog.testing import capture_logs

Passages = Callable[..., EndedCommand]


@pytest.fixture
def front() -> PassageFront:
    made = PassageFront(3)
    for number in range(30):
        made.put(f"d#{number:02}", document="d", document_hash="abc", document_passages=31)
    return made


@pytest.fixture
def passages(
    front: PassageFront, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Passages]:
    command = InProcess(capsys, monkeypatch)

    @asynccontextmanager
    async def serving() -> AsyncIterator[str]:
        async with front.serving(FakeFeed(front)) as address:
            yield address

    with capture_logs(), served_in_thread(serving) as address:
        yield lambda name, *words: command("passages", name, *words, "--address", address)


def test_a_list_shows_a_page_and_how_to_go_on(passages: Passages) -> None:
    first = passages("list", "--limit", "2")
    assert first.returncode == 0
    assert "d#00" in first.stdout
    assert "d#02" not in first.stdout
    token = first.stdout.rpartition("--page-token ")[2].strip()
    rest = json.loads(passages("list", "--page-token", token, "--limit", "40", "--json").stdout)
    assert [each["id"] for each in rest["passages"]] == [f"d#{n:02}" for n in range(2, 30)]
    assert rest["next_page_token"] == ""


def test_passages_are_shown_by_id_and_missing_ones_are_named(passages: Passages) -> None:
    found = passages("get", "d#03", "x", "--json")
    assert [each["id"] for each in json.loads(found.stdout)] == ["d#03"]
    assert (found.returncode, found.stderr) == (1, "not found: x\n")
    assert "some words" in passages("get", "d#03").stdout


def test_passages_and_documents_are_counted(passages: Passages) -> None:
    assert passages("count").stdout == "30\n"
    assert passages("documents").stdout.split()[-4:] == ["d", "30", "31", "abc"]
    (document,) = json.loads(passages("documents", "--json").stdout)
    assert document == {"name": "d", "passages": 30, "hash": "abc", "expected": 31}


def test_an_export_is_written_to_a_file(passages: Passages, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    ended = passages("export", str(path))
    assert ended.stderr == "30 passages were exported\n"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [each["id"] for each in lines] == [f"d#{n:02}" for n in range(30)]
    assert lines[0]["metadata"]["document"] == "d"
    assert "exists" in passages("export", str(path)).stderr


def test_a_document_is_deleted_after_a_dry_run(front: PassageFront, passages: Passages) -> None:
    dry = passages("delete", "--document", "d", "--dry-run")
    assert dry.stdout == "30 passages would be deleted\n"
    assert passages("delete", "--document", "d").stdout == "30 passages were deleted\n"
    assert not any(own.stored for own in front.shards.values())
    again = json.loads(passages("delete", "--document", "d", "--json").stdout)
    assert (again["matched"], again["deleted"], again["complete"]) == (0, 0, True)


@pytest.mark.parametrize("words", [(), ("--where", "a = 1", "--document", "d")])
def test_a_deletion_needs_a_filter_or_a_document(
    passages: Passages, words: tuple[str, ...]
) -> None:
    ended = passages("delete", *words)
    assert ended.returncode == 2
    assert "either --where or --document" in ended.stderr
