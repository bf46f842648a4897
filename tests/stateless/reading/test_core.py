"""Reading texts of callers: results, long texts, remembered states, overload and cancellation."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from known_caller import called_by
from tenacious import LATER, happens
from text_reading import QUESTION, RELEVANCE, TOKENIZER, TextReadingCore, reading_core, texts

from winnow.deadline import Deadline
from winnow.domain.passage import Hit, Passage
from winnow.domain.text_reading import (
    HighlightTextRequest,
    ReadTextsRequest,
    RerankTextsRequest,
    TextReading,
    TextReadings,
    TextToRead,
)
from winnow.errors import DeadlineExceededError, OverloadedError, UnavailableError
from winnow.keys.key import Scope
from winnow.reading.stored_passage import StoredPassage
from winnow.stateless.reading.scoring import ASSUMED_DISTANCE, relevance_score
from winnow.text.question_words import QuestionWords

WORDS = [
    "river",
    "bridge",
    "stone",
    "built",
    "engineer",
    "1987",
    "Łódź",
    "café",
    "naïve",
    "spring",
    "2,700",
    "km",
    "town",
    "old",
]


def made_text(words: int, seed: int) -> str:
    """Returns a text of sentences, the same for a seed."""
    chosen = random.Random(seed).choices(WORDS, k=words)
    return " ".join(word + "." * (not number % 9) for number, word in enumerate(chosen, 1))


def made_texts(count: int, words: int = 30) -> tuple[TextToRead, ...]:
    return texts(*(made_text(words + number % 7, number) for number in range(count)))


@pytest.fixture
def made() -> Iterator[TextReadingCore]:
    with reading_core() as core:
        yield core


async def read(
    made: TextReadingCore, *given: TextToRead, deadline: Deadline = LATER
) -> TextReadings:
    return await made.core.read(ReadTextsRequest(question=QUESTION, texts=given), deadline)


def scores(reading: TextReading) -> TextReading:
    """The reading without its number, and without what depends on earlier requests."""
    return replace(reading, index=0, windows_remembered=0)


async def test_spans_and_sentences_are_ranges_of_the_callers_text(made: TextReadingCore) -> None:
    given = made_texts(20)
    found = await read(made, *given)
    assert [each.index for each in found.readings] == list(range(20))
    for text, each in zip(given, found.readings, strict=True):
        assert each.text == text.text[each.start : each.end] != ""
        assert each.sentence[0] <= each.start < each.end <= each.sentence[1]
    ordered = sorted(found.readings, key=lambda each: -each.score)
    assert found.best == tuple(each.index for each in ordered[:3])
    assert found.has_answer is (ordered[0].score >= 0)


async def test_the_order_and_company_of_texts_do_not_change_their_scores(
    made: TextReadingCore,
) -> None:
    given = made_texts(30)
    together = (await read(made, *given)).readings
    backwards = (await read(made, *reversed(given))).readings
    alone = (await read(made, given[7])).readings
    assert list(map(scores, together)) == list(map(scores, reversed(backwards)))
    assert scores(together[7]) == scores(alone[0])


@pytest.mark.parametrize("words", [40, 70, 400, 5_000])
async def test_a_text_of_any_length_is_read_as_a_content_node_reads_a_passage(
    made: TextReadingCore, words: int
) -> None:
    """The windows, the best span and its offsets are those of the reader for the whole passage."""
    text = made_text(words, words)
    stored = StoredPassage(Passage("p", "", text), (), TOKENIZER.tokenise(text))
    hit = Hit(row=0, passage_id="p", distance=ASSUMED_DISTANCE, hybrid_distance=0.0)
    whole = made.plain.read(TOKENIZER.tokenise(QUESTION).ids, stored, hit, 4)
    (reading,) = (await read(made, TextToRead(text))).readings
    assert (reading.start, reading.end, reading.text) == (whole.start, whole.end, whole.answer)
    assert (reading.score, reading.span_score) == (whole.score, whole.span_score)
    assert reading.windows == len(made.plain.model.window_ranges((), (), len(stored.tokens)))
    assert (reading.windows > 1) is (words > 40)


async def test_remembered_states_give_the_same_result_without_the_lower_layers(
    made: TextReadingCore,
) -> None:
    given = (*made_texts(5), TextToRead(made_text(300, 1)))
    first = await read(made, *given)
    runs = len(made.lower.runs)
    second = await read(made, *given)
    assert len(made.lower.runs) == runs
    assert list(map(scores, second.readings)) == list(map(scores, first.readings))
    assert first.report.windows_remembered == 0
    assert second.report.windows_remembered == second.report.windows == first.report.windows
    titled = await read(made, replace(given[0], title="Bridges"))
    assert titled.report.windows_remembered == 0


async def test_states_are_remembered_for_the_tenant_whose_key_sent_the_text(
    made: TextReadingCore,
) -> None:
    """Their number would tell a tenant that another one has read the same text."""
    for tenant, remembers in (("acme", False), ("beta", False), ("", False), ("acme", True)):
        with called_by(Scope.READ, tenant=tenant):
            found = await read(made, *made_texts(3))
        assert bool(found.report.windows_remembered) is remembers, tenant


async def test_states_are_remembered_within_a_budget() -> None:
    with reading_core(states_mb=0) as forgetful:
        for _ in range(2):
            found = await read(forgetful, *made_texts(5))
        assert found.report.windows_remembered == 0
        assert forgetful.cache.bytes == 0


async def test_texts_are_ranked_by_relevance(made: TextReadingCore) -> None:
    """The order is that of the relevance scores of `read`."""
    given = (*made_texts(20), TextToRead(""), TextToRead(made_text(300, 3)))
    request = RerankTextsRequest(question=QUESTION, texts=given)
    ranked = (await made.core.rerank(request, LATER)).results
    readings = (await read(made, *given)).readings
    ordered = sorted(readings, key=lambda each: (-each.relevance_score, each.index))
    assert [each.index for each in ranked] == [each.index for each in ordered]
    assert [each.relevance for each in ranked] == [each.relevance for each in ordered]
    relevances = [each.relevance_score for each in ranked]
    assert relevances == sorted(relevances, reverse=True)
    assert all(0 <= each <= 1 for each in relevances)
    assert (ranked[-1].index, ranked[-1].relevance_score) == (20, 0.0)
    top = await made.core.rerank(replace(request, top_n=3), LATER)
    assert top.results == ranked[:3]


async def test_words_of_the_question_make_a_text_more_relevant(made: TextReadingCore) -> None:
    """The reader's logit is not all that counts. Words of the title count, too."""
    words = QuestionWords(TOKENIZER.tokenise(QUESTION).ids, TOKENIZER.first_word)
    for title, text in (("", "A river."), ("", "The bridge was built."), ("Bridge", "Nothing.")):
        (reading,) = (await read(made, TextToRead(text, title))).readings
        share = words.share(words.bm25(TOKENIZER.tokenise(f"{title} {text}").ids))
        odds = RELEVANCE.odds(reading.relevance, share)
        assert (share > 0) == ("ridge" in title + text)
        assert reading.relevance_score == relevance_score(odds)


async def test_a_text_without_words_has_no_span(made: TextReadingCore) -> None:
    found = await read(made, *texts("", " \n "))
    assert [(each.text, each.relevance_score) for each in found.readings] == [("", 0.0)] * 2
    assert found.best == ()
    assert not found.has_answer
    assert made.upper.runs == 0


async def test_readings_are_streamed_as_they_come(made: TextReadingCore) -> None:
    given = (*made_texts(10), TextToRead(made_text(500, 1)))
    request = ReadTextsRequest(question=QUESTION, texts=given)
    streamed = [each async for each in made.core.stream(request, LATER)]
    whole = (await read(made, *given)).readings
    assert list(map(scores, sorted(streamed, key=lambda each: each.index))) == [
        scores(replace(each, index=0)) for each in whole
    ]
    assert {each.index for each in streamed} == set(range(11))


@pytest.mark.parametrize("question", [QUESTION, "When was it opened?", "Where?"])
async def test_highlighted_sentences_do_not_overlap(made: TextReadingCore, question: str) -> None:
    """A span in quotation marks or brackets extends its sentence into the next one."""
    for text in (
        "The sign read “Stop. Ada Lind lives here.” and it was blue.",
        "The bridge (opened in 1987. Closed in 1990) was built by Ada Lind. It is old.",
        'He shouted "Stop! Do not cross the bridge!" but nobody heard it.',
    ):
        request = HighlightTextRequest(
            question=question, text=TextToRead(text), sentences=100, min_confidence=0.0
        )
        found = (await made.core.highlight(request, LATER)).sentences
        assert all(each.end <= after.start for each, after in pairwise(found))


async def test_highlighted_sentences_are_in_the_order_of_the_text(made: TextReadingCore) -> None:
    text = "\n\n".join(made_text(200, seed) for seed in range(3))
    request = HighlightTextRequest(
        question=QUESTION, text=TextToRead(text), sentences=5, min_confidence=0.0
    )
    found = await made.core.highlight(request, LATER)
    assert len(found.sentences) == 5
    assert [each.start for each in found.sentences] == sorted(
        each.start for each in found.sentences
    )
    for each in found.sentences:
        assert each.text == text[each.start : each.end]
        assert each.span == text[each.span_start : each.span_end] != ""
        assert each.start <= each.span_start < each.span_end <= each.end
    (reading,) = (await read(made, TextToRead(text))).readings
    assert max(each.score for each in found.sentences) <= reading.score
    sure = await made.core.highlight(replace(request, min_confidence=1.0), LATER)
    assert sure.sentences == ()


async def test_cancelling_frees_the_threads(made: TextReadingCore) -> None:
    made.upper.held = True
    task = asyncio.create_task(read(made, *made_texts(50)))
    for _ in range(2):
        assert await asyncio.to_thread(made.upper.begun.acquire, timeout=60)
    assert made.admission.in_flight == 50
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    made.upper.held = False
    assert made.admission.in_flight == 0
    assert (await read(made, *made_texts(2))).report.windows == 2
    assert made.sample("winnow_reader_windows_stopped_total") == 50


async def test_an_abandoned_stream_frees_the_threads(made: TextReadingCore) -> None:
    request = ReadTextsRequest(question=QUESTION, texts=made_texts(50))
    stream = made.core.stream(request, LATER)
    await anext(stream)
    await stream.aclose()
    assert made.admission.in_flight == 0
    assert (await read(made, *made_texts(2))).report.windows == 2


async def test_a_slow_receiver_of_a_stream_does_not_hold_its_admission(
    made: TextReadingCore,
) -> None:
    request = ReadTextsRequest(question=QUESTION, texts=made_texts(20))
    stream = made.core.stream(request, LATER)
    for _ in request.texts:
        await anext(stream)  # the last one, but not yet the end of the stream
    await read(made, *made_texts(2))
    # a thread of the stream may still be between its last text and its end
    await happens(lambda: made.admission.in_flight == 0)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_each_window_counts_when_it_was_read(made: TextReadingCore) -> None:
    """Otherwise a long request would make the reader look slow to all others until it ends."""
    stream = made.core.stream(ReadTextsRequest(question=QUESTION, texts=made_texts(50)), LATER)
    await anext(stream)
    assert made.sample("winnow_reader_windows_total") > 0
    await stream.aclose()


async def test_a_request_that_cannot_be_finished_in_time_fails(made: TextReadingCore) -> None:
    made.upper.held = True
    with pytest.raises(DeadlineExceededError, match="the deadline passed before"):
        await read(made, *made_texts(3), deadline=Deadline.after(0.2))
    made.upper.held = False
    assert made.admission.in_flight == 0


async def test_texts_beyond_the_limit_are_refused() -> None:
    """Refused before the texts are received, too, once the limit is reached."""
    with reading_core(max_windows=10) as small:
        small.upper.held = True
        first = asyncio.create_task(read(small, *made_texts(10)))
        assert await asyncio.to_thread(small.upper.begun.acquire, timeout=60)
        with pytest.raises(OverloadedError, match="10 parts of texts are waiting"):
            await read(small, *made_texts(1))
        assert isinstance(small.admission.refusal("anybody"), OverloadedError)
        first.cancel()
        await asyncio.wait([first])
        assert small.admission.refusal("anybody") is None


async def test_nothing_is_read_before_the_reader_is_loaded(made: TextReadingCore) -> None:
    made.core._loaded = None
    with pytest.raises(UnavailableError, match="still being loaded"):
        await read(made, *made_texts(1))
