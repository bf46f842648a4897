"""The predictions that the demo expects of heads."""

from pathlib import Path
from typing import Any, cast

import pytest

from winnow.cli.local.demo_texts import DemoText, predict_texts, read_texts
from winnow.client import AsyncClient, Entity, HeadPrediction, LabelScore
from winnow.errors import ArtefactError
from winnow.packaged import demo_corpus

LABELS = (LabelScore("book_flight", 0.9, True), LabelScore("play_music", 0.1, False))
PREDICTIONS = (
    HeadPrediction(head_id="intent", version=1, labels=LABELS),
    HeadPrediction(
        head_id="entities",
        version=1,
        entities=(Entity(label="location", text="Oslo", start=0, end=4, score=0.9),),
    ),
)


class FakeClient:
    """A client whose front always makes the same predictions."""

    def __init__(self, *heads: HeadPrediction) -> None:
        self.heads = heads
        self.results = [self]

    async def ask(self, text: str, **options: Any) -> "FakeClient":
        return self

    async def predict(self, text: str, heads: list[str], **options: Any) -> "FakeClient":
        return self


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(
    ("intent", "entities", "right"),
    [
        ({"book_flight"}, {"Oslo"}, [True, True]),
        (set(), {"Oslo", "Rome"}, [False, False]),
    ],
)
async def test_a_head_is_right_if_it_says_all_that_is_expected_and_nothing_else(
    asked: bool, intent: set[str], entities: set[str], right: list[bool]
) -> None:
    text = DemoText("to Oslo", {"intent": intent, "entities": entities}, asked)
    client = cast("AsyncClient", FakeClient(*PREDICTIONS))
    assert [said.right async for said in predict_texts(client, [text])] == right


async def test_a_head_that_failed_is_wrong_even_where_nothing_is_expected() -> None:
    client = cast("AsyncClient", FakeClient(HeadPrediction(head_id="intent", failure="gone")))
    (said,) = [
        each async for each in predict_texts(client, [DemoText("a", {"intent": set()}, True)])
    ]
    assert (said.right, said.words) == (False, ("gone",))


def test_the_demo_texts_are_texts_and_one_question() -> None:
    texts = read_texts(demo_corpus() / "texts.jsonl")
    assert [each.is_question for each in texts] == [False, False, True]
    assert texts[0].expected == {"intent": {"book_flight"}, "entities": {"Oslo", "Rome"}}


@pytest.mark.parametrize("content", ["{", "{}", '{"text": "a"}', "[]"])
def test_a_file_without_demo_texts_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(content)
    with pytest.raises(ArtefactError, match="has no demo texts"):
        read_texts(path)
