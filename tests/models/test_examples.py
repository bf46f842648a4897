"""Tests of training sequences and the positions of their answers."""

import random
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from models.data import Passage
from models.mining.mine import TrainingQuestion
from models.training.examples import (
    LONG_TOKENS,
    SHORT_TOKENS,
    TokenisedQuestions,
    draw_max_tokens,
    token_span,
    window_start,
)


@given(st.integers(0, 400), st.integers(8, 200), st.data())
def test_a_window_contains_the_whole_span_if_it_fits(
    tokens: int, room: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, max(tokens - 1, 0)))
    last = data.draw(st.integers(first, max(tokens - 1, 0)))
    place = window_start(tokens, room, (first, last), random.Random(1))
    assert 0 <= place <= max(tokens - room, 0)
    assert place <= first
    if tokens > 0 and last - first < room:
        assert last < place + room


@given(st.text(min_size=1, max_size=12), st.integers(0, 10), st.integers(1, 10))
def test_the_tokens_of_an_answer_are_those_that_overlap_it(
    text: str, start: int, length: int
) -> None:
    offsets = [(n, n + 1) for n in range(len(text))]
    span = token_span(offsets, start, length)
    if start >= len(text):
        assert span is None
    else:
        assert span == (start, min(start + length, len(text)) - 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 299), st.integers(1, 5), st.integers(0, 1000))
def test_the_marked_tokens_are_the_answer(
    tiny_weights: Path, first: int, words: int, seed: int
) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_weights / "tokenizer.json"))
    said = [f"word{n * 7 % 40}" for n in range(300)]
    text = " ".join(said)
    answer = " ".join(said[first : first + words])
    start = len(" ".join(said[:first])) + (first > 0)
    asked = TrainingQuestion(
        question="who won the tour?",
        answer=answer,
        answer_start=start,
        source="a",
        positive=0,
        negatives=(1,),
    )
    passages = [Passage("The Tour", text), Passage("Danube", "The Danube rises in the of.")]
    encoded = TokenisedQuestions(tokenizer, passages, [asked])
    most = draw_max_tokens(random.Random(seed))
    example = encoded.positive(0, most, random.Random(seed))
    assert example is not None
    assert tokenizer.decode(example.ids[example.start : example.end + 1]) == answer
    assert example.window[0] <= example.start <= example.end < example.window[1]
    assert len(example.types) == len(example.ids)
    assert example.types == sorted(example.types)
    assert len(example.ids) <= most
    negative = encoded.negative(0, 1, most, random.Random(seed))
    assert negative.start == -1
    assert len(negative.ids) <= most


def test_the_same_generator_gives_the_same_sequence(tiny_weights: Path) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_weights / "tokenizer.json"))
    text = " ".join(f"word{n % 40}" for n in range(400))
    asked = TrainingQuestion(
        question="who?",
        answer="word5",
        answer_start=text.index("word5"),
        source="a",
        positive=0,
        negatives=(0,),
    )
    encoded = TokenisedQuestions(tokenizer, [Passage("", text)], [asked])
    runs = [encoded.positive(0, SHORT_TOKENS, random.Random("1/2")) for _ in range(2)]
    assert runs[0] == runs[1]


def test_few_steps_have_whole_passages() -> None:
    drawn = [draw_max_tokens(random.Random(step)) for step in range(1000)]
    assert set(drawn) == {SHORT_TOKENS, LONG_TOKENS}
    assert drawn.count(LONG_TOKENS) < len(drawn) / 5
