"""Heads of a store on the real encoder: predictions over gRPC, and with questions."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from conftest import QUESTIONS
from prometheus_client import CollectorRegistry
from small_heads import small_head
from tenacious import LONG
from whole_cluster import running, warm_group

from winnow.bundle import Bundle
from winnow.client import AsyncClient
from winnow.deadline import Deadline
from winnow.domain.prediction import PredictionReply, PredictRequest
from winnow.heads.admission import TextAdmission
from winnow.heads.store import open_store
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.encoder_groups import EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.text.tokenizer import Tokenizer

TEN = tuple(f"head-{n}" for n in range(10))
TEXTS = [f"Is this text {n} of fifteen, " + "and longer " * n + "?" for n in range(15)]


@pytest.fixture(scope="module")
def store(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of ten heads with random weights, and one that labels every word as a person."""
    root = tmp_path_factory.mktemp("heads")
    made = open_store(root / "store")
    fingerprint = bundle.manifest.states_fingerprint
    for number, head in enumerate(TEN, start=1):
        made.publish(small_head(root / head, head, number, width=384, fingerprint=fingerprint))
    names = small_head(
        root / "names", "names", 1, "token", width=384, fingerprint=fingerprint, says=1
    )
    made.publish(names)
    return root / "store"


@pytest.mark.bundle
async def test_a_prediction_does_not_depend_on_other_heads_texts_or_threads(
    bundle: Bundle, store: Path
) -> None:
    """Scores are equal bit for bit with one or ten heads, among other texts, on any thread."""
    async with contextlib.AsyncExitStack() as stack:
        tokenizer = Tokenizer(bundle.tokenizer)
        model = open_question_encoder(bundle, tokenizer.special, states=True)
        encoder = LocalTextEncoder(model, 2)
        stack.callback(encoder.close)
        groups = EncoderGroups([warm_group(bundle, tokenizer, encoder, store, stack)])
        metrics = HeadMetrics(CollectorRegistry())
        core = PredictCore(groups, Predictor(groups, metrics), TextAdmission(64, metrics), metrics)

        async def predict(texts: list[str], *ids: str) -> PredictionReply:
            request = PredictRequest(texts=tuple(texts), head_ids=ids)
            return await core.predict(request, Deadline.after(LONG))

        text = "Who won the Tour de France in 2015?"
        alone = (await predict([text], "head-3")).results[0].heads[0]
        for place in (0, 7, 15):
            texts = [*TEXTS[:place], text, *TEXTS[place:]]
            assert (await predict(texts, "head-3")).results[place].heads == (alone,)
            assert (await predict(texts, *TEN)).results[place].heads[3] == alone
    assert len(alone.labels) == 3


@pytest.mark.bundle
async def test_a_question_with_heads_has_its_answer_and_the_predictions_of_predict(
    indexes: dict[int, Path], bundle: Bundle, store: Path
) -> None:
    question, expected = QUESTIONS[0]
    async with (
        running(indexes[2], bundle, heads=store) as cluster,
        AsyncClient(cluster.client.address) as client,
    ):
        plain = await client.ask(question)
        reply = await client.ask(question, heads=["head-1", "names", "unknown"])
        said = (await client.predict(question, ["head-1", "names"])).results[0]
    assert reply.answer == plain.answer == expected
    assert reply.answers == plain.answers
    assert reply.heads[:2] == said.heads
    assert [each.text for each in reply.heads[1].entities][:2] == ["Who", "won"]
    assert reply.heads[2].failure == "there is no head 'unknown' in this encoder group"
    looks = "winnow_front_encoding_cache_total"
    misses = cluster.registry.get_sample_value(looks, {"result": "miss"})
    assert misses == 1, "asked twice and predicted, it was encoded once"


@pytest.mark.bundle
async def test_many_concurrent_requests_are_all_predicted_or_refused(
    indexes: dict[int, Path], bundle: Bundle, store: Path
) -> None:
    async with (
        running(indexes[1], bundle, heads=store) as cluster,
        AsyncClient(cluster.client.address) as client,
    ):
        predictions = [client.predict(TEXTS[:4], TEN[:3]) for _ in range(8)]
        asked = [client.ask(question, heads=TEN[:2]) for question, _ in QUESTIONS]
        said, answered = await asyncio.gather(asyncio.gather(*predictions), asyncio.gather(*asked))
    assert all(not head.failure for one in said for text in one.results for head in text.heads)
    assert [each.answer for each in answered] == [expected for _, expected in QUESTIONS]
