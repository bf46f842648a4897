"""What choosing loses: the figures of `bench/choosing.py`."""

from typing import Any

from bench.choosing import chosen_and_there


def answer(text: str, score: float, distance: float) -> dict[str, Any]:
    return {"text": text, "passage": text, "score": score, "hybrid_distance": distance}


ANSWERS = [answer("Cy", 8, 0.1), answer("Ada", 9, 0.3), answer("Bo", 5, 0.2)]
ROW: dict[str, Any] = {"accepted": ["Ada"], "answers": ANSWERS}


def test_an_answer_beyond_the_passages_that_are_read_is_not_there() -> None:
    assert chosen_and_there(ROW, 2) == (False, False)
    assert chosen_and_there(ROW, 3) == (True, True)


def test_a_right_answer_that_is_not_the_best_is_there_and_not_chosen() -> None:
    beaten = {**ROW, "answers": [*ANSWERS, answer("Di", 10, 0.4)]}
    assert chosen_and_there(beaten, 4) == (False, True)
    assert chosen_and_there({**ROW, "answers": []}, 4) == (False, False)
