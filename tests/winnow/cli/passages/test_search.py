"""What `winnow search` shows."""

from winnow.cli.passages.search import render_search
from winnow.client import Coverage, FoundPassage, Passage, SearchReply, Source


def reply(*found: FoundPassage, failed: int = 0) -> SearchReply:
    coverage = Coverage(complete=not failed, known=9, searched=9 - failed, failed=failed)
    return SearchReply(passages=found, coverage=coverage, request_id="r")


def passage(text: str, *highlights: tuple[int, int], source: Source | None = None) -> FoundPassage:
    return FoundPassage(
        passage=Passage(id="p#1", title="Oslo", text=text),
        score=-0.25,
        distance=0.5,
        hybrid_distance=0.25,
        words=1.0,
        highlights=highlights,
        shard=2,
        source=source,
    )


def test_words_of_the_question_are_between_asterisks_in_a_pipe() -> None:
    source = Source(document="cities.pdf", page=4)
    found = passage("Oslo is\x1b the capital", (0, 4), (13, 20), source=source)
    lines = [line.plain for line in render_search(reply(found), plain=True)]
    assert lines == [
        "1. Oslo",
        "**Oslo** is\N{REPLACEMENT CHARACTER} the **capital**",
        "cities.pdf, page 4, score -0.250, passage p#1, shard 2\n",
    ]


def test_words_of_the_question_are_highlighted_in_a_terminal() -> None:
    line = list(render_search(reply(passage("Oslo is it", (0, 4))), plain=False))[1]
    assert (line.plain, [(each.start, each.end) for each in line.spans]) == ("Oslo is it", [(0, 4)])


def test_missing_passages_and_failed_shards_are_told() -> None:
    lines = [line.plain for line in render_search(reply(failed=3), plain=True)]
    assert lines == [
        "no passage was found",
        "3 passages were not searched, because shards failed",
    ]
