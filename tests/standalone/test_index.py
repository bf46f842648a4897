"""An index in the process of a program that asks it."""

import asyncio
import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import QUESTIONS, Recorder
from tenacious import LONG

from winnow import AsyncIndex, Index
from winnow.bundle import Bundle
from winnow.client import Options, Outcome, PassageFields, Reply
from winnow.content_node.indexing.builder import build_empty_index
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.merging.names import LIVE
from winnow.content_node.merging.states import carry_states
from winnow.content_node.splitting.write_half import write_half
from winnow.domain.partition import halves_of
from winnow.domain.shard import shard_name, shard_of
from winnow.domain.write import Write
from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    InvalidRequestError,
    NotLoadedError,
    NotWritableError,
    UnavailableError,
)
from winnow.index_directory import shard_directories
from winnow.packaged import default_bundle
from winnow.stateless.composing import cluster
from winnow.stateless.feed.encoding import FeedEncoder

pytestmark = pytest.mark.bundle
ASKED = "Who won the Zorblax Prize in 2031?"
WON: PassageFields = {
    "id": "zorblax",
    "title": "Zorblax Prize",
    "text": "The Zorblax Prize of 2031 was won by Marta Quendelheim.",
}


@pytest.fixture
def directory(indexes: dict[int, Path], tmp_path: Path) -> Path:
    """A copy of an index of two shards, which may be written to."""
    return Path(shutil.copytree(indexes[2], tmp_path / "index"))


def found(reply: Reply) -> list[object]:
    return [(each.text, each.score, each.passage.id) for each in reply.answers]


def test_its_answers_are_the_same_for_any_number_of_shards(indexes: dict[int, Path]) -> None:
    with Index.open(indexes[1]) as one, Index.open(indexes[8]) as many:
        # few enough to be read however busy the machine is
        few: Options = {"max_loss": 0, "passages_to_read": 3}
        for question, answer in QUESTIONS:
            reply = one.ask(question, **few, timeout=LONG)
            assert reply.coverage.complete
            assert reply.answers[0].text == answer
            assert found(many.ask(question, **few, timeout=LONG)) == found(reply)


def test_an_index_whose_shard_was_split_gives_the_same_answers_and_takes_writes(
    indexes: dict[int, Path], directory: Path
) -> None:
    parent = directory / shard_name(1, 2)
    carry = partial(carry_states, default_bundle(), parent)
    for half in halves_of(1, 2):
        made = directory / shard_name(half, 2)
        made.mkdir()
        write_half(parent, parent, half, made, following=False, carry=carry)
    shutil.rmtree(parent)
    few: Options = {"max_loss": 0, "passages_to_read": 3}
    with Index.open(indexes[2]) as whole, Index.open(directory, writable=True) as split:
        for question, _ in QUESTIONS:
            assert found(split.ask(question, **few, timeout=LONG)) == found(
                whole.ask(question, **few, timeout=LONG)
            )
        split.put(WON)
        assert split.ask(ASKED, **few, timeout=LONG).answer == "Marta Quendelheim"


def test_what_is_put_is_found_also_after_a_merge_and_when_it_is_opened_again(
    directory: Path,
) -> None:
    with Index.open(directory, writable=True) as index:
        index.put(WON)
        assert index.ask(ASKED, timeout=LONG).answers[0].text == "Marta Quendelheim"
        index.merge()
        assert index.ask(ASKED, timeout=LONG).answers[0].text == "Marta Quendelheim"
    with Index.open(directory, writable=True) as index:
        assert index.ask(ASKED, timeout=LONG).answers[0].text == "Marta Quendelheim"
        index.delete("zorblax")
        assert "Marta Quendelheim" not in [
            each.text for each in index.ask(ASKED, timeout=LONG).answers
        ]


def test_words_of_earlier_writes_count_for_the_first_question(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its scores would differ from those of later questions."""
    monkeypatch.setattr(cluster, "_COUNT_EVERY", LONG)
    with Index.open(directory, writable=True) as index:
        index.put(WON)
        before_counting = index.search(ASKED, timeout=LONG)
    with Index.open(directory) as index:
        counted = index.search(ASKED, timeout=LONG)
    assert counted.passages[0].passage.id == before_counting.passages[0].passage.id == "zorblax"
    assert counted.passages[0].words < before_counting.passages[0].words


def test_an_index_that_begins_empty_answers_from_what_is_put(
    bundle: Bundle, tmp_path: Path
) -> None:
    """It has no passages before the first write, and its shards can be merged and verified."""
    build_empty_index(tmp_path / "index", bundle, 2, Recorder())
    with Index.open(tmp_path / "index", writable=True) as index:
        assert index.ask(ASKED, timeout=LONG).answers == ()
        index.put(WON)
        assert index.ask(ASKED, timeout=LONG).answer == "Marta Quendelheim"
        index.merge()
        assert index.ask(ASKED, timeout=LONG).answer == "Marta Quendelheim"
    assert not any(report.faults for report in verify_index(tmp_path / "index", 10, 0.9))


def test_a_merge_names_a_damaged_shard_and_merges_the_others(directory: Path) -> None:
    damaged, whole = shard_directories(directory)
    (damaged / "passages.sqlite").write_bytes(b"damaged")
    own = next(f"p{n}" for n in range(100) if shard_of(f"p{n}", 2) == 1)
    with Index.open(directory, writable=True) as index:
        index.put({**WON, "id": own})
        with pytest.raises(NotLoadedError, match=damaged.name):
            index.merge()
    assert any(each.is_dir() for each in (whole / LIVE).iterdir()), "a generation"


def test_an_index_that_is_only_read_refuses_writes_and_says_how_to_allow_them(
    directory: Path,
) -> None:
    with Index.open(directory) as index:
        for write in (lambda: index.put(WON), lambda: index.delete("a"), index.merge):
            with pytest.raises(NotWritableError, match="open it with writable=True"):
                write()


@pytest.mark.parametrize("writable", [False, True])
def test_nobody_else_opens_an_index_that_is_written_to(directory: Path, writable: bool) -> None:
    with Index.open(directory, writable=True) as index:
        index.put([{"id": str(number), "text": f"Passage {number}."} for number in range(20)])
        with pytest.raises(ArtefactError, match=r"no shard can be loaded: .*another"):
            Index.open(directory, writable=writable)
        assert index.ask(QUESTIONS[0][0], timeout=LONG).coverage.complete


def test_several_may_read_one_index(directory: Path) -> None:
    with Index.open(directory, writable=True) as index:
        index.put(WON)
    with Index.open(directory) as one, Index.open(directory) as other:
        first, second = (each.ask(ASKED, timeout=LONG).answers[0] for each in (one, other))
        # not the scores: each reader fetches the rarity of written words by itself
        assert (first.text, first.passage.id) == (second.text, second.passage.id)


def test_a_closed_index_says_so(indexes: dict[int, Path]) -> None:
    index = Index.open(indexes[1])
    index.close()
    index.close()
    with pytest.raises(UnavailableError, match="was closed: open it again"):
        index.ask("Who?")


def test_a_second_closing_waits_for_the_first_also_after_an_interrupted_wait(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index.open(directory, writable=True)
    index.put(WON)
    may_end = threading.Event()
    close = index._index._stack.aclose

    async def close_late() -> None:
        await asyncio.to_thread(may_end.wait)
        await close()

    monkeypatch.setattr(index._index._stack, "aclose", close_late)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(index._loop._ended, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.close()
    with (
        Index.open(directory, writable=True) as other,  # the other shard has taken no writes
        pytest.raises(UnavailableError, match="is held by another node"),
    ):
        other.put(WON, timeout=LONG)
    may_end.set()
    index.close()
    with Index.open(directory, writable=True) as again:
        assert again.ask(ASKED, timeout=LONG).coverage.complete


def test_an_index_stays_open_while_the_program_changes_its_working_directory(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory.parent)
    with Index.open(directory.name, writable=True) as index:
        other = directory.parent / "other"
        shutil.copytree(directory, other / directory.name)
        monkeypatch.chdir(other)
        index.put(WON)
        index.merge()
    with Index.open(directory) as index:
        assert index.ask(ASKED, timeout=LONG).answers[0].passage.id == WON["id"]


def test_closing_ends_the_calls_of_other_threads(indexes: dict[int, Path]) -> None:
    index = Index.open(indexes[2])
    endless = index._index._open_services()
    began = threading.Event()

    async def call(*_: object) -> None:
        began.set()
        await asyncio.Event().wait()

    endless.call = call  # type: ignore[method-assign, assignment]
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(index.ask, "Who?")
        assert began.wait(LONG)
        index.close()
        with pytest.raises(UnavailableError, match="was closed: open it again"):
            asking.result(LONG)


async def test_an_index_for_asyncio_is_not_opened_over_itself(directory: Path) -> None:
    async with AsyncIndex.open(directory, writable=True) as index:
        with pytest.raises(UnavailableError, match="is open already"):
            async with index:
                pass
        assert (await index.put(WON, timeout=LONG))[0].outcome is Outcome.STORED
    async with index:  # again, once it is closed
        assert (await index.ask(ASKED, timeout=LONG)).coverage.complete


async def test_an_index_for_asyncio_is_used_within_its_block(indexes: dict[int, Path]) -> None:
    with pytest.raises(UnavailableError, match="is not open"):
        await AsyncIndex.open(indexes[1]).ask("Who?")


def test_a_program_that_never_closes_its_index_ends(indexes: dict[int, Path]) -> None:
    asked = f"ask({QUESTIONS[1][0]!r}, timeout={LONG})"
    program = f"from winnow import Index; print(Index.open({str(indexes[1])!r}).{asked}.coverage)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "complete=True" in done.stdout


def test_an_index_also_reads_texts_of_its_caller(indexes: dict[int, Path]) -> None:
    """The reader of its shards reads them, and remembers their states."""
    texts = ["It is an old prize.", WON["text"]]
    with Index.open(indexes[1]) as index:
        first, again = (index.read(ASKED, texts, timeout=LONG) for _ in range(2))
        assert first.answer.startswith("Marta Quendelheim")
        assert first.best[0].index == 1
        assert first.report.windows_remembered == 0
        assert again.report.windows_remembered == 2
        assert [each.score for each in again.readings] == [each.score for each in first.readings]
        assert index.rerank(ASKED, texts, timeout=LONG).results[0].index == 1
        assert index.highlight(ASKED, " ".join(texts), timeout=LONG).sentences[0].text == texts[1]


def test_a_directory_without_an_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="is not an index"):
        Index.open(tmp_path)


def test_a_prediction_without_heads_says_how_to_open_the_index(indexes: dict[int, Path]) -> None:
    with (
        Index.open(indexes[1]) as index,
        pytest.raises(UnavailableError, match="without heads: open it with heads=STORE"),
    ):
        index.predict("Turn it off.", heads=["tickets"])


def test_invalid_questions_name_their_fields(indexes: dict[int, Path]) -> None:
    with Index.open(indexes[1]) as index:
        with pytest.raises(InvalidRequestError, match="question: is empty"):
            index.ask("")
        with pytest.raises(InvalidRequestError, match="filter"):
            index.ask("Who?", where="year >")


def test_a_forked_process_is_told_to_open_its_own(indexes: dict[int, Path]) -> None:
    with Index.open(indexes[1]) as index:
        forked = multiprocessing.get_context("fork").Process(target=asks_in_fork, args=(index,))
        forked.start()
        forked.join(LONG)
        assert forked.exitcode == 0
        assert index.ask(QUESTIONS[0][0], timeout=LONG).coverage.complete


def all_end() -> bool:
    """Whether all threads that load shards or feed end."""
    threads = [each for each in threading.enumerate() if each.name.startswith(("loading", "feed"))]
    for each in threads:
        each.join(LONG)
    return not any(each.is_alive() for each in threads)


def begins(owner: Any, method: str) -> asyncio.Semaphore:
    """Has each call of an asynchronous method release the semaphore when it begins."""
    begun, inner = asyncio.Semaphore(0), getattr(owner, method)

    async def announced(*arguments: Any) -> Any:
        begun.release()
        return await inner(*arguments)

    setattr(owner, method, announced)
    return begun


def asks_in_fork(index: Index) -> None:
    try:
        index.ask("Who?")
    except UnavailableError as error:
        os._exit(0 if "open the index in each process" in str(error) else 1)
    os._exit(2)


async def test_many_questions_at_once_get_the_answers_that_one_gets(
    indexes: dict[int, Path],
) -> None:
    async with AsyncIndex.open(indexes[2]) as index:
        few: Options = {"fresh": True, "passages_to_read": 2}  # little enough to be admitted
        alone = [found(await index.ask(question, **few, timeout=LONG)) for question, _ in QUESTIONS]
        together = await asyncio.gather(
            *(index.ask(question, **few, timeout=LONG) for question, _ in QUESTIONS)
        )
        assert [found(each) for each in together] == alone


async def test_a_cancelled_question_leaves_the_index_usable(indexes: dict[int, Path]) -> None:
    async with AsyncIndex.open(indexes[2]) as index:
        began = begins(index._open_services(), "call")
        asking = asyncio.create_task(index.ask(QUESTIONS[0][0], max_loss=0, timeout=LONG))
        await asyncio.wait_for(began.acquire(), LONG)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await index.ask(QUESTIONS[0][0], timeout=LONG)).answers[0].text == QUESTIONS[0][1]


async def test_calls_that_run_when_an_index_is_closed_say_so(indexes: dict[int, Path]) -> None:
    async with AsyncIndex.open(indexes[2]) as index:
        began = begins(index._open_services(), "call")
        few: Options = {"fresh": True, "passages_to_read": 1}
        asking = [  # few enough to be admitted on any machine
            asyncio.create_task(index.ask(each, **few, timeout=LONG)) for each, _ in QUESTIONS[:2]
        ]
        for _ in asking:
            await asyncio.wait_for(began.acquire(), LONG)
    async with asyncio.timeout(LONG):
        ended = await asyncio.gather(*asking, return_exceptions=True)
    assert {type(each) for each in ended} == {UnavailableError}
    assert "closed during the call" in str(ended[0])


async def test_a_cancelled_closing_still_releases_the_directory(directory: Path) -> None:
    index = AsyncIndex.open(directory, writable=True)
    await index.__aenter__()
    await index.put(WON)
    shards_closing = [
        begins(shard._write_path, "close") for shard in index._open_services()._shards
    ]
    closing = asyncio.create_task(index.__aexit__())
    for begun in reversed(shards_closing):
        await asyncio.wait_for(begun.acquire(), LONG)
        closing.cancel()
    await asyncio.wait([closing], timeout=LONG)
    assert closing.cancelled()
    async with AsyncIndex.open(directory, writable=True) as again:
        assert (await again.ask(ASKED)).coverage.complete


@pytest.mark.parametrize("seconds", [0.05, 0.4, 0.8])
async def test_an_index_can_be_opened_at_once_after_a_cancelled_opening(
    directory: Path, seconds: float
) -> None:
    async with AsyncIndex.open(directory, writable=True) as index:
        await index.put([{"id": str(number), "text": "Passage."} for number in range(20)])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds), AsyncIndex.open(directory, writable=True):
            pass
    async with AsyncIndex.open(directory, writable=True) as index:
        assert (await index.ask(QUESTIONS[0][0], timeout=LONG)).coverage.complete
    assert await asyncio.to_thread(all_end)


@pytest.mark.parametrize("seconds", [0.1, 0.6])
def test_a_program_that_is_interrupted_while_it_opens_an_index_ends(
    indexes: dict[int, Path], seconds: float
) -> None:
    program = f"""
import _thread, signal, threading
from winnow import Index
signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
try:
    threading.Timer({seconds}, _thread.interrupt_main).start()
    Index.open({str(indexes[8])!r}).close()
    threading.Event().wait({LONG})
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "interrupted"), done.stderr
    assert "destroyed" not in done.stderr


def test_a_timeout_that_is_no_number_is_refused(indexes: dict[int, Path]) -> None:
    with (
        Index.open(indexes[1]) as index,
        pytest.raises(InvalidRequestError, match="timeout: nan is not a number of seconds"),
    ):
        index.ask("Who?", timeout=float("nan"))


def test_a_journal_without_its_client_leaves_no_lock(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(*_: object) -> None:
        raise UnavailableError("the client is not installed")

    with Index.open(directory, writable=True) as index:
        index.put([{"id": str(number), "text": "Passage."} for number in range(20)])
    config = tmp_path / "journal.toml"
    config.write_text('[node]\njournal = "nats://127.0.0.1:1"\n')
    with monkeypatch.context() as patched:
        patched.setattr("winnow.content_node.journal.composing.open_journal", not_installed)
        with pytest.raises(UnavailableError, match="not installed") as raised:
            Index.open(directory, writable=True, config=config)
    with Index.open(directory, writable=True) as index:
        assert index.ask(QUESTIONS[0][0], timeout=LONG).coverage.complete
    del raised  # its traceback would hold the shards, and thereby a lock that was not released


def test_a_write_that_takes_longer_than_its_timeout_ends(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write would take for ever: its passage is not encoded before the write has ended."""
    may_go_on, encode = threading.Event(), FeedEncoder._encode

    def encode_late(encoder: FeedEncoder, write: Write, with_tokens: bool) -> Write:
        assert may_go_on.wait(60)
        return encode(encoder, write, with_tokens)

    monkeypatch.setattr(FeedEncoder, "_encode", encode_late)
    with Index.open(directory, writable=True) as index:
        try:
            with pytest.raises(DeadlineExceededError):
                index.put(WON, timeout=0.3)
        finally:
            may_go_on.set()


def test_a_closed_index_keeps_no_file_open(directory: Path) -> None:
    def open_files() -> set[str]:
        links = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
        return {each for each in links if each.startswith(str(directory))}

    with Index.open(directory, writable=True) as index:
        index.put(WON)
        assert open_files()
    assert not open_files()
