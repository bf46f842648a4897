"""`winnow feed` against a front over gRPC.

The command runs in the process of the tests, except where its input or a signal matters.
"""

import asyncio
import contextlib
import gzip
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from fed_front import FedFront
from in_process import InProcess
from scripted_front import scripted_front
from serving_thread import served_in_thread
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.cli.local.ports import free_ports
from winnow.errors import NotWritableError

COMMAND = [sys.executable, "-m", "winnow", "feed"]


async def started(*arguments: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND, *map(str, arguments), stdin=-1, stdout=-1, stderr=-1
    )


class Feed(Protocol):
    """Runs `winnow feed` in this process; returns exit code, stdout and stderr."""

    def __call__(self, *arguments: object) -> tuple[int, str, str]: ...


@pytest.fixture
def feed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Feed:
    command = InProcess(capsys, monkeypatch)

    def run(*arguments: object) -> tuple[int, str, str]:
        with capture_logs():  # of the front, which is in this process, too
            ended = command("feed", *map(str, arguments))
        return ended.returncode, ended.stdout, ended.stderr

    return run


@pytest.fixture
def front(bundle: Bundle) -> Iterator[FedFront]:
    made = FedFront(bundle)
    yield made
    made.close()


@pytest.fixture
def address(front: FedFront) -> Iterator[str]:
    with served_in_thread(front.serving) as made:
        yield made


def passages(path: Path, count: int, **more: Any) -> Path:
    rows = [{"id": f"p{n}", "title": "T", "text": f"text {n}", **more} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_every_row_of_a_file_is_stored(
    feed: Feed, front: FedFront, address: str, tmp_path: Path
) -> None:
    file = passages(tmp_path / "p.jsonl", 120, metadata={"year": 2015}, version=3)
    code, out, err = feed(file, "--address", address, "--json", "--batch", 7)
    assert code == 0, err
    said = json.loads(out)
    assert (said["stored"], said["unchanged"], said["line"], said["bad_rows"]) == (120, 0, 120, 0)
    assert {name: each.passage.text for name, each in front.passages.items()} == {
        f"p{n}": f"text {n}" for n in range(120)
    }
    assert front.passages["p7"].passage.metadata == '{"year": 2015}'
    assert front.shard("p7").versions["p7"] == 3
    assert not list(tmp_path.glob("*.feeding"))
    code, out, _ = feed(file, "--address", address)
    assert (code, out) == (0, f"{file}: 0 stored, 120 unchanged, 0 outdated\n")


def test_packed_tsv_and_a_pipe_are_read_as_the_builder_does(
    feed: Feed,
    front: FedFront,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "p.tsv.gz"
    file.write_bytes(gzip.compress(b"id\ttext\ttitle\na\tsome words\tT\n"))
    assert feed(file, "--address", address)[0] == 0
    for flags, lines in (
        ((), b'{"id": "b", "text": "other words"}\n'),
        (("--format", "tsv"), b"c\tmore words\tT\n"),
    ):
        reader, writer = os.pipe()
        os.write(writer, lines)
        os.close(writer)
        with monkeypatch.context() as piped, os.fdopen(reader) as pipe:
            piped.setattr(sys, "stdin", pipe)
            assert feed("-", *flags, "--address", address)[0] == 0
    assert sorted(front.passages) == ["a", "b", "c"]


def test_feed_delete_removes_the_passages_of_the_same_file(
    feed: Feed, front: FedFront, address: str, tmp_path: Path
) -> None:
    file = passages(tmp_path / "p.jsonl", 30)
    feed(file, "--address", address)
    code, out, _ = feed(file, "--delete", "--address", address)
    assert (code, out) == (0, f"{file}: 30 deleted, 0 unchanged, 0 outdated\n")
    assert not front.passages
    ids = tmp_path / "ids.txt"
    ids.write_text("p1\np2\n")
    code, out, _ = feed(ids, "--delete", "--address", address)
    assert (code, out) == (0, f"{ids}: 0 deleted, 2 unchanged, 0 outdated\n")


@pytest.mark.parametrize("form", ["ids.txt", "ids.tsv", "ids.jsonl", "documents.jsonl"])
def test_deleting_a_document_deletes_all_its_passages(
    feed: Feed, front: FedFront, address: str, tmp_path: Path, form: str
) -> None:
    """The file may have the documents' ids only, or be the file that was fed."""
    fed = tmp_path / "documents.jsonl"
    rows = [
        {"id": name, "title": "T", "text": " ".join("word" for _ in range(count))}
        for name, count in (("long", 1_650), ("short", 20), ("kept", 180))
    ]
    fed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert feed(fed, "--cut", "--address", address)[0] == 0
    assert len(front.passages) == 11 + 1 + 2
    contents = {
        "ids.txt": "long\nshort\nnever\n",
        "ids.tsv": "id\tname\nlong\tx\nshort\ty\nnever\tz\n",
        "ids.jsonl": '{"id": "long"}\n{"id": "short"}\n{"id": "never"}\n',
        "documents.jsonl": "".join(
            json.dumps(row) + "\n" for row in [*rows[:2], {"id": "never", "text": "a b"}]
        ),
    }
    file = tmp_path / form
    file.write_text(contents[form])
    command = (file, "--delete", "--cut", "--address", address)
    code, out, err = feed(*command)
    assert (code, out) == (0, f"{file}: 2 documents deleted (12 passages), 1 not found\n"), err
    assert sorted(front.passages) == ["kept#0", "kept#1"]
    code, out, _ = feed(*command, "--json")
    said = json.loads(out)
    assert (code, said["stored"], said["passages"], said["unchanged"]) == (0, 0, 0, 3)


def test_a_document_cannot_be_deleted_with_a_version(
    feed: Feed, address: str, tmp_path: Path
) -> None:
    """A deletion with a version leaves a tombstone for every passage id, even of missing ones."""
    file = tmp_path / "ids.jsonl"
    file.write_text('{"id": "doc", "version": 3}\n')
    code, _, err = feed(file, "--delete", "--cut", "--address", address)
    assert code == 1
    assert "version is for passages: leave it out to delete a whole document" in err


def test_a_shorter_document_replaces_all_passages_of_the_longer_one(
    feed: Feed, front: FedFront, address: str, tmp_path: Path
) -> None:
    file = tmp_path / "documents.jsonl"
    for count in (450, 180):
        text = " ".join(f"word{n}" for n in range(count))
        file.write_text(json.dumps({"id": "doc", "title": "T", "text": text}) + "\n")
        assert feed(file, "--cut", "--batch", 2, "--address", address)[0] == 0
        assert len(front.passages) == -(-count // 150)
    assert front.passages["doc#1"].passage.text == " ".join(f"word{n}" for n in range(150, 180))


def test_all_bad_rows_are_reported_before_anything_is_sent(
    feed: Feed, front: FedFront, address: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": "a", "text": "words"}\n{"id": "b"}\nno json\n')
    code, out, err = feed(file, "--address", address)
    assert (code, out, front.passages) == (1, "", {})
    assert "line 2: text is missing; the fields are: id" in err
    assert "line 3: not JSON" in err
    assert "2 bad rows, and nothing was sent" in err
    code, out, err = feed(file, "--address", address, "--skip-bad-rows")
    assert (code, sorted(front.passages)) == (0, ["a"])
    assert "2 bad rows were left out" in out


def test_rows_that_the_front_would_refuse_are_reported_before_anything_is_sent(
    feed: Feed, front: FedFront, address: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.jsonl"
    both = {"id": "b", "text": "a" * 10_001, "metadata": {"year": 10**400}}
    rows = [{"id": "a", "text": "words"}, both]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = feed(file, "--address", address)
    assert (code, front.passages) == (1, {})
    assert "line 2: text has 10001 characters" in err
    assert "; metadata 'year' has a number that is infinite or too large" in err
    assert "1 bad row, and nothing was sent" in err


def test_a_row_that_only_the_front_refuses_is_reported_with_its_line(
    feed: Feed, front: FedFront, address: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.jsonl"
    # three tokens a word
    rows = [{"id": "a", "text": "words"}, {"id": "b", "text": "\uac01 " * 5_000}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = feed(file, "--address", address)
    assert code == 1
    assert "line 2: text has" in err
    assert "tokens, at most 14000" in err
    code, out, _ = feed(file, "--address", address, "--skip-bad-rows")
    assert (code, sorted(front.passages)) == (0, ["a"])
    assert "1 bad row was left out" in out


def test_a_failed_feed_resumes_where_it_stopped(
    feed: Feed, front: FedFront, address: str, tmp_path: Path
) -> None:
    file = passages(tmp_path / "p.jsonl", 40)
    for shard in front.shards:
        shard.fails, shard.stored_first = NotWritableError("its replicas share no log"), 6
    flags = ("--address", address, "--batch", 4, "--concurrency", 1)
    code, out, err = feed(file, *flags)
    assert (code, out) == (1, "")
    assert "its replicas share no log" in err
    assert "--resume" in err
    noted = json.loads((tmp_path / "p.jsonl.feeding").read_text())["line"]
    assert 20 <= noted < 40
    assert f"all rows up to line {noted} are durable" in err
    front.shards[0].fails = front.shards[1].fails = None
    code, out, _ = feed(file, *flags, "--resume", "--json")
    assert (code, json.loads(out)["line"]) == (0, 40)
    assert len(front.passages) == 40
    assert not list(tmp_path.glob("*.feeding"))


async def test_ctrl_c_prints_how_to_resume(front: FedFront, tmp_path: Path) -> None:
    file = passages(tmp_path / "p.jsonl", 400)
    async with front.serving() as address:
        process = await started(file, "--address", address, "--batch", 4)
        await front.noticed.holds(20)
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(process.communicate(), LONG)
        assert process.returncode == 130
        assert "to resume: winnow feed" in err.decode()
        line = json.loads((tmp_path / "p.jsonl.feeding").read_text())["line"]
        assert all(f"p{n}" in front.passages for n in range(line))
        again = await started(file, "--address", address, "--resume")
        assert await asyncio.wait_for(again.wait(), LONG) == 0
    assert len(front.passages) == 400


async def test_ctrl_c_ends_a_feed_that_waits_for_input(address: str) -> None:
    process = await started("-", "--address", address, "--patience", 1)
    assert process.stderr is not None
    async with asyncio.timeout(LONG):
        assert b"feeding" in await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), LONG) == 130


async def test_a_feed_waits_for_a_front_that_restarts(front: FedFront, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    file = passages(tmp_path / "p.jsonl", 10)
    process = await started(file, "--address", f"127.0.0.1:{port}", "--json")
    assert process.stderr is not None
    async with asyncio.timeout(LONG):
        while b"feeding" not in await process.stderr.readline():
            pass
    async with front.serving(port):
        _, err = await asyncio.wait_for(process.communicate(), LONG)
    assert process.returncode == 0, err
    assert len(front.passages) == 10


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["/missing.jsonl"], 1, "cannot read /missing.jsonl: No such file"),
        (["-", "--resume"], 2, "standard input needs a --resume-file"),
        (["-", "--address", "nowhere"], 2, "neither HOST:PORT nor"),
        ([], 2, "FILE"),
    ],
)
def test_errors_of_feed_are_reported(
    feed: Feed, arguments: list[str], code: int, said: str
) -> None:
    found, out, err = feed(*arguments)
    assert (found, out) == (code, "")
    assert said.lower() in err.lower()


def test_a_file_of_unknown_format_is_refused(feed: Feed, address: str, tmp_path: Path) -> None:
    file = tmp_path / "passages"
    file.write_text("{}")
    code, _, err = feed(file, "--address", address)
    assert (code, "unknown format" in err) == (1, True)


def test_the_question_port_is_refused_immediately(feed: Feed, tmp_path: Path) -> None:
    file = passages(tmp_path / "p.jsonl", 1)
    with served_in_thread(scripted_front) as other:
        code, _, err = feed(file, "--address", other.address)
    assert code == 1
    assert "--feed-listen (to feed, on that port)" in err
    assert "trying again" not in err


def test_a_port_of_http_is_refused_immediately(feed: Feed, tmp_path: Path) -> None:
    replying = list[asyncio.Task[Any] | None]()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replying.append(asyncio.current_task())
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        await reader.read()  # until the client gives up
        writer.close()

    @contextlib.asynccontextmanager
    async def serving() -> AsyncIterator[int]:
        async with await asyncio.start_server(reply, "127.0.0.1", 0) as other:
            yield other.sockets[0].getsockname()[1]
        # gRPC closes its connections in background threads, also after the command has ended
        async with asyncio.timeout(LONG):
            await asyncio.gather(*filter(None, replying), return_exceptions=True)

    file = passages(tmp_path / "p.jsonl", 1)
    with served_in_thread(serving) as port:
        code, _, err = feed(file, "--address", f"127.0.0.1:{port}")
    assert code == 1
    assert "that port serves HTTP" in err
    assert "trying again" not in err


def test_feed_reports_that_nothing_listens(feed: Feed, tmp_path: Path) -> None:
    file = passages(tmp_path / "p.jsonl", 1)
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    code, _, err = feed(file, "--address", nowhere, "--patience", 0)
    assert code == 1
    assert "cannot reach a front node at" in err
