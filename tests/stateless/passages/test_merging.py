"""Pages of shards become pages of the index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.listing import DocumentPage, PassagePage, StoredDocument
from winnow.domain.passage import Passage
from winnow.stateless.passages import pages
from winnow.stateless.passages.pages import limit_of_shard, merge_documents, merge_passages


def page(*ids: str, complete: bool = False, text: str = "") -> PassagePage:
    return PassagePage(passages=tuple(Passage(each, "", text) for each in ids), complete=complete)


def test_a_page_ends_where_a_shard_may_have_more() -> None:
    """Shard 2 may have a passage "d", so "e" must wait for the next page."""
    merged, complete = merge_passages([page("a", "e"), page("b", "c")], 9)
    assert ([each.id for each in merged], complete) == (["a", "b", "c"], False)
    merged, complete = merge_passages([page("a", "e"), page("b", complete=True)], 9)
    assert ([each.id for each in merged], complete) == (["a", "b", "e"], False)


def test_the_last_page_is_complete_unless_it_is_cut() -> None:
    both = [page("b", complete=True), page("a", "c", complete=True)]
    assert merge_passages(both, 3)[1]
    merged, complete = merge_passages(both, 2)
    assert ([each.id for each in merged], complete) == (["a", "b"], False)
    assert merge_passages([page(complete=True)], 2) == ((), True)


def test_a_page_is_cut_when_its_passages_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", 20)
    merged, complete = merge_passages([page("a", "b", "c", complete=True, text="x" * 9)], 9)
    assert ([each.id for each in merged], complete) == (["a", "b"], False)


@given(st.integers(1, 1_000), st.integers(1, 4_096))
def test_shards_return_their_share_of_a_page_and_a_little_more(limit: int, shards: int) -> None:
    own = limit_of_shard(limit, shards)
    assert 1 <= own <= limit
    assert own * shards >= limit


def document(
    name: str, passages: int, hash_: str = "h", expected: int | None = 5
) -> StoredDocument:
    return StoredDocument(name=name, passages=passages, hash=hash_, expected=expected)


def test_the_parts_of_a_document_are_added_up() -> None:
    one = DocumentPage(documents=(document("a", 1), document("b", 2)), complete=True)
    two = DocumentPage(
        documents=(document("a", 3), document("b", 1, "new", 6), document("c", 1)), complete=True
    )
    merged, complete = merge_documents([one, two], 9)
    assert merged == (document("a", 4), document("b", 3, "", None), document("c", 1))
    assert complete
    assert merge_documents([one, two], 2) == (merged[:2], False)


def test_a_document_is_not_listed_before_all_its_parts_are_known() -> None:
    one = DocumentPage(documents=(document("a", 1),), complete=False)
    two = DocumentPage(documents=(document("a", 3), document("b", 1)), complete=True)
    assert merge_documents([one, two], 9) == ((document("a", 4),), False)
