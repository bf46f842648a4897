"""Tests of the conversion in worker processes."""

import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import LINUX
from tenacious import LONG

from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.conversion.protocol import ConversionLimits
from winnow.documents.conversion.worker import ConversionWorker
from winnow.documents.cutting import cut
from winnow.documents.document import Document
from winnow.documents.failures import ConversionFailure, FailureReason

HANG = "input(); import time; time.sleep(999)"


def worker(code: str, seconds: float = LONG) -> ConversionWorker:
    """Returns a worker whose process runs `code`."""
    return ConversionWorker(ConversionLimits(seconds=seconds), [sys.executable, "-c", code])


def test_files_are_converted_in_order_and_failures_are_values(tmp_path: Path) -> None:
    pages = [tmp_path / f"{number}.html" for number in range(20)]
    for number, page in enumerate(pages):
        page.write_text(f"<h1>Page {number}</h1>", encoding="utf-8")
    pages[3].write_bytes(b"\x00\x01" * 500)
    pages[5].unlink()
    os.mkfifo(pages[5])
    pages[7].unlink()
    with DocumentConverter(workers=2) as converter:
        results = list(converter.convert(pages))
    assert [path for path, _ in results] == pages
    failures = {int(path.stem): each for path, each in results if not isinstance(each, Document)}
    assert {number: failure.reason for number, failure in failures.items()} == {
        3: FailureReason.UNKNOWN_FORMAT,
        5: FailureReason.UNREADABLE,
        7: FailureReason.UNREADABLE,
    }
    documents = {int(path.stem): each for path, each in results if isinstance(each, Document)}
    assert all(each.text == f"Page {number}" for number, each in documents.items())
    assert {each.format for each in documents.values()} == {"HTML"}


def test_workers_cut_documents(tmp_path: Path) -> None:
    """So that the limits of a conversion cover the cut, too. The checksum is of what was read."""
    page = tmp_path / "page.html"
    page.write_text("<h1>A</h1><p>one<h2>B</h2><p>two<h1>C</h1>", encoding="utf-8")
    with DocumentConverter(workers=1) as converter:
        ((_, converted),) = converter.convert([page])
    assert isinstance(converted, Document)
    assert converted.passages == tuple(cut(converted))
    assert converted.sha256 == hashlib.sha256(page.read_bytes()).hexdigest()


def test_files_are_taken_only_a_little_ahead(tmp_path: Path) -> None:
    taken = []

    def paths() -> Iterator[Path]:
        for number in range(1_000):
            taken.append(number)
            yield tmp_path / f"{number}.txt"

    with DocumentConverter(workers=1) as converter:
        next(converter.convert(paths()))
    assert len(taken) < 10


def test_limits_of_size_are_failures(tmp_path: Path) -> None:
    long, large = tmp_path / "long.txt", tmp_path / "large.txt"
    long.write_text("word " * 1_000, encoding="utf-8")
    large.touch()
    os.truncate(large, 2 << 30)
    headings = tmp_path / "headings.md"
    headings.write_text("# a\n\n" * 50, encoding="utf-8")
    limits = ConversionLimits(seconds=LONG, file_bytes=10_000, characters=1_000, passages=49)
    with DocumentConverter(workers=1, limits=limits) as converter:
        results = dict(converter.convert([long, large, headings]))
    assert results[headings] == ConversionFailure(
        FailureReason.TOO_LARGE, "the text has more than 49 passages"
    )
    assert results[long] == ConversionFailure(
        FailureReason.TOO_LARGE, "the text has 4,999 characters, at most 1,000 are allowed"
    )
    assert results[large] == ConversionFailure(
        FailureReason.TOO_LARGE, "the file has 2,147,483,648 bytes, at most 10,000 are read"
    )


def test_the_current_directory_has_no_modules_of_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a file among documents would be run."""
    (tmp_path / "hashlib.py").write_text("raise SystemExit", encoding="utf-8")
    page = tmp_path / "page.html"
    page.write_text("<h1>Page</h1>", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with DocumentConverter(workers=1) as converter:
        ((_, converted),) = converter.convert([page])
    assert isinstance(converted, Document)


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX)
def test_a_file_that_needs_too_much_memory_fails_alone(tmp_path: Path) -> None:
    greedy, small = tmp_path / "greedy.html", tmp_path / "small.html"
    greedy.write_text("<p>word" * 20_000_000, encoding="utf-8")
    small.write_text("<p>word", encoding="utf-8")
    limits = ConversionLimits(seconds=LONG, memory_bytes=400_000_000)
    with DocumentConverter(workers=1, limits=limits) as converter:
        results = dict(converter.convert([greedy, small]))
    assert results[greedy] == ConversionFailure(
        FailureReason.TOO_MUCH_MEMORY, "the conversion needs more than 400 MB"
    )
    assert isinstance(results[small], Document)


def test_a_conversion_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    slow = worker(HANG, seconds=0.1)
    for _ in range(2):
        failure = slow.convert(tmp_path)
        assert isinstance(failure, ConversionFailure)
        assert failure.reason is FailureReason.TOO_SLOW
        assert failure.detail == "the conversion took more than 0.1 seconds"


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("input(); import os; os.kill(os.getpid(), 9)", "the process was ended by SIGKILL"),
        ("input(); raise SystemExit(3)", "the process ended with exit code 3"),
        ("print('x' * 99, flush=True); input(); input()", "the conversion gave an invalid reply"),
    ],
)
def test_a_process_that_ends_or_babbles_is_a_failure(
    tmp_path: Path, code: str, detail: str
) -> None:
    failure = worker(code).convert(tmp_path)
    assert isinstance(failure, ConversionFailure)
    assert failure.reason is FailureReason.CRASHED
    assert failure.detail.startswith(detail)


def test_a_worker_can_be_killed_while_it_converts(tmp_path: Path) -> None:
    hanging = worker(HANG)
    results = []
    thread = threading.Thread(target=lambda: results.append(hanging.convert(tmp_path)))
    thread.start()
    hanging.kill()
    thread.join()
    assert results == [ConversionFailure(FailureReason.CRASHED, "the conversion was stopped")]
    hanging.close()
