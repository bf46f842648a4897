"""The text of a document, joined from its passages."""

from hypothesis import given
from hypothesis import strategies as some

from winnow.client import Passage
from winnow.mcp.document_text import join_passages


def part(text: str, start: int, end: int) -> Passage:
    metadata = {"document": "a.txt", "start": start, "end": end}
    return Passage(id=f"a.txt#{start}", title="", text=text[start:end], metadata=metadata)


@given(some.text(min_size=1), some.data())
def test_passages_that_cover_a_text_are_joined_to_it(text: str, data: some.DataObject) -> None:
    """Their order and their overlaps do not matter."""
    cuts = sorted({0, *data.draw(some.lists(some.integers(0, len(text))))} - {len(text)})
    ends = [*cuts[1:], len(text)]
    overlap = data.draw(some.integers(0, 5))
    parts = [
        part(text, max(start - overlap, 0), end) for start, end in zip(cuts, ends, strict=True)
    ]
    assert join_passages(data.draw(some.permutations(parts))) == text


def test_text_between_passages_that_the_index_lacks_is_a_break() -> None:
    text = "one two three"
    assert join_passages([part(text, 8, 13), part(text, 0, 3)]) == "one\n\nthree"


def test_passages_without_offsets_keep_their_order() -> None:
    parts = [Passage(id=each, title="", text=each) for each in ("b", "a")]
    assert join_passages(parts) == "b\n\na"
