"""Texts that are encoded in one run."""

import asyncio
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tenacious import LONG, happens

from winnow.bundle import Bundle
from winnow.errors import ArtefactError
from winnow.inference.batching import BatchingTextEncoder, check_can_batch
from winnow.inference.encoder import Encoder, QuestionEncoding, open_question_encoder
from winnow.inference.session import Inputs, Outputs, padded_inputs
from winnow.inference.stop_signal import StopSignal
from winnow.policy.batching import BatchLimits
from winnow.text.tokenizer import SpecialTokens, Tokenizer


class Model(Encoder):
    """Runs when it is told to; a text's vector is its first id, and its states are its ids."""

    def __init__(self) -> None:
        super().__init__(self, SpecialTokens(101, 102), 1)  # type: ignore[arg-type]
        self.runs: list[list[tuple[int, ...]]] = []
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()
        self.fails: Exception | None = None

    def encode_batch(self, texts: Sequence[Sequence[int]]) -> list[QuestionEncoding]:
        self.runs.append([tuple(ids) for ids in texts])
        self.begun.release()
        assert self.go_on.wait(LONG)
        if self.fails is not None:
            raise self.fails
        return [
            QuestionEncoding(
                np.array(ids[:1], np.float32), np.array(ids, np.float16)[:, None], None
            )
            for ids in texts
        ]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def encoder(model: Model) -> Iterator[BatchingTextEncoder]:
    """Four texts, or 40 tokens, a run; it waits for nobody."""
    made = BatchingTextEncoder(model, BatchLimits(4, 40, 0.0))
    yield made
    model.go_on.set()
    made.close()


async def in_a_run(model: Model) -> None:
    """Waits until a run has begun."""
    assert await asyncio.to_thread(model.begun.acquire, True, LONG)


async def waiting(encoder: BatchingTextEncoder, texts: int) -> None:
    await happens(lambda: len(encoder._queue) == texts)


async def test_what_comes_during_a_run_is_one_run(
    model: Model, encoder: BatchingTextEncoder
) -> None:
    first = asyncio.create_task(encoder.encode([1]))
    await in_a_run(model)
    others = [asyncio.create_task(encoder.encode([n])) for n in (2, 3, 4, 5, 6)]
    await waiting(encoder, 5)
    model.go_on.set()
    found = await asyncio.gather(first, *others)
    assert [each.vector[0] for each in found] == [1, 2, 3, 4, 5, 6]
    assert model.runs == [[(1,)], [(2,), (3,), (4,), (5,)], [(6,)]]


async def test_a_text_that_has_no_room_begins_the_next_run(
    model: Model, encoder: BatchingTextEncoder
) -> None:
    first = asyncio.create_task(encoder.encode([1]))
    await in_a_run(model)
    others = [asyncio.create_task(encoder.encode([n] * n)) for n in (5, 30, 6)]
    await waiting(encoder, 3)
    model.go_on.set()
    await asyncio.gather(first, *others)
    assert [[len(ids) for ids in run] for run in model.runs] == [[1], [5], [30], [6]]


async def test_a_caller_that_gives_up_is_left_out_of_the_run(
    model: Model, encoder: BatchingTextEncoder
) -> None:
    first = asyncio.create_task(encoder.encode([1]))
    await in_a_run(model)
    leaves, stays = (asyncio.create_task(encoder.encode([n])) for n in (2, 3))
    await waiting(encoder, 2)
    leaves.cancel()
    await asyncio.wait([leaves])
    model.go_on.set()
    await asyncio.gather(first, stays)
    assert model.runs == [[(1,)], [(3,)]]


async def test_clients_take_turns_within_a_run(model: Model, encoder: BatchingTextEncoder) -> None:
    first = asyncio.create_task(encoder.encode([1]))
    await in_a_run(model)
    greedy = [asyncio.create_task(encoder.encode([n], "greedy")) for n in range(10, 18)]
    await waiting(encoder, 8)
    polite = asyncio.create_task(encoder.encode([2], "polite"))
    await waiting(encoder, 9)
    model.go_on.set()
    await asyncio.gather(first, *greedy, polite)
    assert (2,) in model.runs[1][:2]


async def test_an_error_is_told_to_all_of_its_run_and_to_nobody_else(
    model: Model, encoder: BatchingTextEncoder
) -> None:
    model.fails = ZeroDivisionError()
    model.go_on.set()
    ended = await asyncio.gather(*map(encoder.encode, [[1], [2]]), return_exceptions=True)
    assert [type(each) for each in ended] == [ZeroDivisionError] * 2
    model.fails = None
    assert (await encoder.encode([3])).vector == [3]


async def test_the_first_text_waits_for_others_until_the_run_is_full(model: Model) -> None:
    encoder = BatchingTextEncoder(model, BatchLimits(3, 400, LONG))
    model.go_on.set()
    try:
        found = await asyncio.wait_for(
            asyncio.gather(*map(encoder.encode, [[1], [2], [3]])), LONG / 2
        )
    finally:
        encoder.close()
    assert len(found) == len(model.runs[0]) == 3


async def test_closing_cancels_waiting_callers(model: Model) -> None:
    encoder = BatchingTextEncoder(model, BatchLimits(1, 400, 0.0))
    tasks = [asyncio.create_task(encoder.encode([n])) for n in (1, 2)]
    await in_a_run(model)
    closing = asyncio.create_task(asyncio.to_thread(encoder.close))
    await happens(lambda: encoder._closed)
    model.go_on.set()
    await closing
    await asyncio.wait(tasks, timeout=LONG)
    assert [task.cancelled() for task in tasks] == [False, True]
    assert model.runs == [[(1,)]]


def test_int8_models_are_refused_more_than_one_text_a_run() -> None:
    check_can_batch(1, "int8")
    check_can_batch(16, "fp32")
    with pytest.raises(ArtefactError, match="16 texts per run need a float model"):
        check_can_batch(16, "int8")


def test_padding_is_masked() -> None:
    inputs = padded_inputs([[5, 6, 7], [8]])
    assert inputs["input_ids"].tolist() == [[5, 6, 7], [8, 0, 0]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert inputs["token_type_ids"].tolist() == [[0, 0, 0], [0, 0, 0]]


class Masked:
    """A model whose vector is the mean of what is not masked, and whose states are the ids."""

    def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        mean = (ids * mask).sum(1, keepdims=True) / mask.sum(1, keepdims=True)
        return [mean.astype(np.float32), ids[:, :, None].astype(np.float32)]


def test_a_text_gets_its_own_vector_and_states_out_of_a_run() -> None:
    encoder = Encoder(Masked(), SpecialTokens(1, 2), 1)
    texts: list[list[int]] = [[4, 5], [], [9]]
    for ids, done in zip(texts, encoder.encode_batch(texts), strict=True):
        alone, alone_states = encoder.with_states(ids)
        assert done.vector == alone
        assert done.states is not None
        assert alone_states is not None
        assert done.states[:, 0].tolist() == alone_states[:, 0].tolist() == [1, *ids, 2]


@pytest.mark.bundle
async def test_the_real_model_runs_full_batches(bundle: Bundle) -> None:
    """This one is int8, which is why services refuse it: cosines of 0.986 to 0.995 were seen."""
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_question_encoder(bundle, tokenizer.special, states=True)
    encoder = BatchingTextEncoder(model, BatchLimits(4, 256, 0.0))
    texts = [tokenizer.tokenise(text).ids for text in ("who won?", "a", "what is the capital?")]
    try:
        found = await asyncio.gather(*map(encoder.encode, texts))
    finally:
        encoder.close()
    for ids, each in zip(texts, found, strict=True):
        assert each.vector @ model.question(ids) > 0.97
        assert each.states is not None
        assert each.states.shape == (len(ids) + 2, 384)
