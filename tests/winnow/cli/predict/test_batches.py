"""Many texts as requests of a few."""

from collections.abc import Sequence

import pytest

from winnow.cli.predict.batches import batches, predict_batch
from winnow.client import Predictions, PredictTimings, TextPrediction
from winnow.errors import InvalidRequestError, UnavailableError, Violation


def reply(texts: Sequence[str]) -> Predictions:
    return Predictions(tuple(TextPrediction(t, ()) for t in texts), "en", PredictTimings(), "id")


def test_texts_go_in_order_sixteen_at_a_time() -> None:
    made = list(batches(map(str, range(40))))
    assert [len(each) for each in made] == [16, 16, 8]
    assert [text for batch in made for text in batch] == list(map(str, range(40)))


def test_a_text_that_is_refused_takes_none_of_the_others_with_it() -> None:
    refused = []

    def ask(texts: Sequence[str]) -> Predictions:
        bad = [Violation(f"texts[{n}]", "is bad") for n, text in enumerate(texts) if "x" in text]
        if bad:
            raise InvalidRequestError(*bad)
        return reply(texts)

    got = predict_batch(["a", "x1", "b", "x2"], ask, lambda *said: refused.append(said))
    assert [each.text for each in got] == ["a", "b"]
    assert refused == [("x1", "is bad"), ("x2", "is bad")]
    assert predict_batch(["x"], ask, lambda *_: None) == ()


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("gone"),
        InvalidRequestError(Violation("head_ids", "is empty")),
        InvalidRequestError(Violation("texts[0]", "is bad"), Violation("head_ids[0]", "is bad")),
    ],
)
def test_an_error_of_every_text_ends_the_command(error: Exception) -> None:
    def ask(texts: Sequence[str]) -> Predictions:
        raise error

    with pytest.raises(type(error)):
        predict_batch(["a"], ask, lambda *_: None)
