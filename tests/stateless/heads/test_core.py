"""The predict core over fake encoders and heads, with the real tokenizer."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

import pytest
from fake_encoder_groups import MOST_TOKENS, FakePredictions
from manual_clock import ManualClock
from tenacious import LONG
from virtual_loop import in_virtual_time

from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, LabelScore, PredictRequest, SequencePrediction
from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    IdentityError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
)
from winnow.heads.run import EncoderThreadRun


@pytest.fixture
def fake(bundle: Bundle) -> FakePredictions:
    return FakePredictions(bundle)


async def test_results_come_in_the_order_of_texts_and_heads(fake: FakePredictions) -> None:
    got = await fake.predict("Ada Lovelace speaks", "hello", ids="names,mood,intent")
    assert [[each.head_id for each in text.heads] for text in got.results] == [
        ["names", "mood", "intent"],
        ["names", "mood", "intent"],
    ]
    (entity,) = got.results[0].heads[0].entities
    assert (entity.label, entity.text, entity.start, entity.end) == (
        "person", "Ada Lovelace", 0, 12,
    )  # fmt: skip
    assert {each.label for each in got.results[0].heads[1].labels} == {"glad", "sad", "calm"}
    assert got.group == "en"
    assert got.timings.total > 0
    assert got.timings.encode == pytest.approx(0.004)
    # of the second text, which has one token, the span of two is no part
    assert isinstance(got.results[1].heads[0].failure, UnavailableError)
    assert (fake.predictions("ok"), fake.predictions("failed")) == (5, 1)


async def test_each_text_is_encoded_once_for_any_number_of_heads(fake: FakePredictions) -> None:
    await fake.predict("one two", "three", "one  TWO", ids="intent,mood,names")
    assert len(fake.encoders["en"].encoded) == 2
    assert fake.heads["en"].applied == [("intent", "mood", "names")] * 3


async def test_a_prediction_depends_neither_on_other_texts_nor_on_other_heads(
    fake: FakePredictions,
) -> None:
    """Bit for bit: nothing is batched."""
    fake.heads["en"].labels |= {f"h{n}": ("a", "b") for n in range(10)}
    ids = ",".join(f"h{n}" for n in range(10))
    alone = (await fake.predict("what is this", ids="h3")).results[0].heads[0]
    many = await fake.predict(*(f"text {n}" for n in range(15)), "what is this", ids=ids)
    assert many.results[15].heads[3] == alone


async def test_a_long_text_is_cut_and_says_so(fake: FakePredictions) -> None:
    got = await fake.predict("word " * 20, "word")
    assert [text.truncated for text in got.results] == [True, False]
    assert max(map(len, fake.encoders["en"].encoded)) == MOST_TOKENS


async def test_texts_without_a_word_are_named_all_at_once(fake: FakePredictions) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await fake.predict("fine", "\u200d", "\u200d\u200d")
    assert [each.field for each in caught.value.violations] == ["texts[1]", "texts[2]"]
    assert not fake.encoders["en"].encoded


async def test_unknown_groups_and_heads_are_not_found_and_named(fake: FakePredictions) -> None:
    with pytest.raises(NotFoundError, match="unknown encoder group 'fr': this front has en, de"):
        await fake.predict("hello", group="fr")
    with pytest.raises(NotFoundError, match=r"there is no head 'x', 'y' in this encoder group"):
        await fake.predict("hello", "you", ids="x,intent,y")


async def test_an_encoder_group_is_chosen_by_its_name(fake: FakePredictions) -> None:
    got = await fake.predict("hallo", ids="absicht", group="de")
    assert (got.group, fake.encoders["en"].encoded) == ("de", [])


async def test_a_head_that_fails_leaves_the_others(fake: FakePredictions) -> None:
    fake.heads["en"].failing["mood"] = IdentityError("made for another encoder")
    got = await fake.predict("hello", ids="mood,intent")
    mood, intent = got.results[0].heads
    assert str(mood.failure) == "made for another encoder"
    assert intent.failure is None
    assert fake.predictions("other_encoder") == 1


async def test_if_every_head_fails_the_request_fails_as_the_first_one(
    fake: FakePredictions,
) -> None:
    fake.heads["en"].failing["mood"] = IdentityError("another encoder")
    fake.heads["en"].failing["intent"] = OverloadedError("no room")
    with pytest.raises(IdentityError, match="another encoder"):
        await fake.predict("hello", ids="mood,intent")


async def test_errors_of_files_are_logged_and_not_told_to_callers(
    fake: FakePredictions,
) -> None:
    fake.heads["en"].failing["mood"] = ArtefactError("/secret/path is damaged")
    with pytest.raises(UnavailableError, match=r"^head mood cannot be applied; the server's log"):
        await fake.predict("hello", ids="mood")


async def test_a_text_that_cannot_be_encoded_leaves_the_others(fake: FakePredictions) -> None:
    encoder = fake.encoders["en"]
    encoder.fails = UnavailableError("gone")
    encoder.fails_for = fake.tokenizer.tokenise("bad").ids[0]
    got = await fake.predict("bad", "good")
    assert str(got.results[0].heads[0].failure) == "gone"
    assert got.results[1].heads[0].failure is None


@pytest.mark.parametrize("what", ["encoders", "heads"])
@in_virtual_time
async def test_an_encoder_or_a_head_that_hangs_is_given_up(
    fake: FakePredictions, what: str
) -> None:
    hung = getattr(fake, what)["en"]
    hung.hangs = True
    request = PredictRequest("hello", head_ids=("intent",))
    deadline = Deadline.after(0.3, ManualClock())  # which does not pass while it waits
    with pytest.raises(DeadlineExceededError, match="the deadline passed before the"):
        await fake.core.predict(request, deadline)
    await asyncio.wait_for(hung.released.wait(), LONG)


async def test_heads_are_told_to_be_ready_before_their_work_is_given_up(
    fake: FakePredictions,
) -> None:
    """Or one that is late would take with it what the others said."""
    await fake.predict("hello")
    (told,) = fake.heads["en"].deadlines
    assert told.left() < LONG - 0.02


@pytest.mark.parametrize("what", ["encoders", "heads"])
async def test_a_caller_that_goes_away_frees_its_encoder_and_heads(
    fake: FakePredictions, what: str
) -> None:
    hung = getattr(fake, what)["en"]
    hung.hangs = True
    call = asyncio.create_task(fake.predict("hello"))
    await asyncio.wait_for(hung.hanging.wait(), LONG)
    assert fake.registry.get_sample_value("winnow_front_texts_in_hand") == 1
    call.cancel()
    await asyncio.wait([call])
    await asyncio.wait_for(hung.released.wait(), LONG)
    assert fake.registry.get_sample_value("winnow_front_texts_in_hand") == 0


async def test_a_deadline_that_has_passed_is_not_begun(fake: FakePredictions) -> None:
    clock = ManualClock()
    with pytest.raises(DeadlineExceededError, match="before the texts were validated"):
        await fake.core.predict(
            PredictRequest("hello", head_ids=("intent",)), Deadline.after(0, clock)
        )
    assert not fake.encoders["en"].encoded


async def test_a_head_that_has_moved_is_applied_where_it_is_now(fake: FakePredictions) -> None:
    fake.heads["en"].moved["intent"] = "de"
    fake.heads["de"].labels["intent"] = ("new",)
    fake.heads["de"].version = 7
    got = await fake.predict("hello", ids="mood,intent")
    mood, intent = got.results[0].heads
    assert (mood.version, intent.version) == (1, 7)
    assert [each.label for each in intent.labels] == ["new"]
    assert fake.heads["de"].applied == [("intent",)]


@pytest.mark.parametrize("case", ["not here", "fails there", "cannot be encoded there", "unknown"])
async def test_where_a_moved_head_cannot_be_applied_the_version_at_hand_serves(
    fake: FakePredictions, case: str
) -> None:
    fake.heads["en"].moved["intent"] = "fr" if case == "not here" else "de"
    if case == "fails there":
        fake.heads["de"].fails = UnavailableError("gone")
    if case == "cannot be encoded there":
        fake.encoders["de"].fails = UnavailableError("gone")
    got = await fake.predict("hello")
    (intent,) = got.results[0].heads
    assert (intent.version, intent.failure) == (1, None)


async def test_heads_that_were_run_where_the_text_was_encoded_are_not_run_again(
    fake: FakePredictions,
) -> None:
    begun: list[tuple[str, ...]] = []

    @contextlib.contextmanager
    def ahead(ids: Sequence[str], _: Deadline) -> Iterator[EncoderThreadRun]:
        begun.append(tuple(ids))
        done = Applied(
            head="mood",
            version=9,
            prediction=SequencePrediction((LabelScore("glad", 1.0, True),), None),
        )
        yield EncoderThreadRun(applied=lambda: [done])

    fake.groups.default.begin_run = ahead
    predicted = await fake.predict("a text", ids="intent,mood,names")
    assert [(each.head_id, each.version) for each in predicted.results[0].heads] == [
        ("intent", 1),
        ("mood", 9),
        ("names", 1),
    ]
    assert begun == [("intent", "mood", "names")]
    assert fake.heads["en"].applied == [("intent", "names")]


async def test_texts_wait_in_a_queue_apart_from_questions(fake: FakePredictions) -> None:
    """A question of the same client need not wait for all its texts."""
    await fake.predict("one", "two")
    assert fake.encoders["en"].clients == fake.heads["en"].clients == ["me:predict"] * 2


async def test_more_texts_than_may_be_in_hand_are_refused_at_once(bundle: Bundle) -> None:
    fake = FakePredictions(bundle, most=16)
    fake.encoders["en"].hangs = True
    first = asyncio.create_task(fake.predict(*(f"text {n}" for n in range(16))))
    await asyncio.wait_for(fake.encoders["en"].hanging.wait(), LONG)
    with pytest.raises(OverloadedError, match="16 texts are in flight") as caught:
        await fake.predict("one more")
    assert caught.value.retry_after > 0
    assert fake.registry.get_sample_value("winnow_front_predict_refusals_total") == 1
    first.cancel()
    await asyncio.wait([first])
    fake.encoders["en"].hangs = False
    assert (await fake.predict("one more")).results


async def test_without_a_store_it_says_how_to_get_one(bundle: Bundle) -> None:
    fake = FakePredictions(bundle, groups=False)
    with pytest.raises(UnavailableError, match="serves no heads: start it with --heads STORE"):
        await fake.predict("hello")
    with pytest.raises(InvalidRequestError):
        await fake.predict("")
    assert fake.core.groups() == []


async def test_encoder_groups_are_listed_with_their_heads_in_memory(fake: FakePredictions) -> None:
    assert [group.name for group in fake.core.groups()] == ["en", "de"]
    (group,) = fake.core.groups("de")
    assert (group.fingerprint, group.budget_bytes, len(group.warm)) == ("of-de", 512, 1)
    with pytest.raises(NotFoundError, match="unknown encoder group 'fr'"):
        fake.core.groups("fr")
