"""What heads say survives the journey between head servers and fronts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.caller import message_of
from winnow.convert import head_node as convert
from winnow.domain.prediction import (
    Applied,
    LabelScore,
    SequencePrediction,
    TokenPrediction,
    TokenSpan,
)
from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.v1 import head_node_pb2

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)
scores = st.floats(0, 1, width=32)
sequences = st.builds(
    SequencePrediction,
    st.lists(st.builds(LabelScore, words, scores, st.booleans()), min_size=1, max_size=4).map(
        tuple
    ),
    st.none() | st.booleans(),
)
spans = st.builds(TokenSpan, words, st.integers(0, 60), st.integers(0, 60), scores)
predictions = sequences | st.builds(TokenPrediction, st.lists(spans, max_size=3).map(tuple))


@given(
    st.builds(
        Applied,
        head=words,
        version=st.integers(1, 2**31),
        prediction=predictions,
        failure=st.none(),
        moved_to=words,
    )
)
def test_predictions_survive_the_journey(applied: Applied) -> None:
    sent = convert.applied_to_message(applied).SerializeToString()
    assert convert.applied_of_message(head_node_pb2.AppliedHead.FromString(sent)) == applied


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotFoundError("no head x"), NotFoundError),
        (UnavailableError("no store"), UnavailableError),
        (OverloadedError("full"), OverloadedError),
        (DeadlineExceededError("late"), DeadlineExceededError),
        (IdentityError("other"), IdentityError),
        (ArtefactError("damaged"), WinnowError),
    ],
)
def test_failures_survive_the_journey(error: WinnowError, kind: type[WinnowError]) -> None:
    back = convert.applied_of_message(
        convert.applied_to_message(Applied(head="x", version=0, failure=error))
    )
    assert (back.head, back.version, back.prediction) == ("x", 0, None)
    assert type(back.failure) is kind
    assert str(back.failure) == str(error)


def test_what_a_head_server_says_of_its_store_is_not_for_callers() -> None:
    lost = UnavailableError("head store /secret/heads cannot be used: no route")
    back = convert.applied_of_message(
        convert.applied_to_message(Applied(head="x", version=0, failure=lost))
    )
    assert back.failure is not None
    assert message_of(back.failure) == "a node could not be reached, or is not ready: try again"


def test_a_failure_of_no_known_kind_is_one_all_the_same() -> None:
    failure = head_node_pb2.Failure(code=99, message="?")
    back = convert.applied_of_message(head_node_pb2.AppliedHead(head_id="x", failure=failure))
    assert type(back.failure) is WinnowError


def test_states_travel_bit_for_bit() -> None:
    states = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float16)
    message = convert.request_to_message(states, ["a", "b"], "print")
    sent = head_node_pb2.ApplyRequest.FromString(message.SerializeToString())
    assert convert.states_of_request(sent).tobytes() == states.tobytes()
    assert (list(sent.head_ids), sent.encoder_fingerprint) == (["a", "b"], "print")
