"""A sync adds, replaces and removes documents, so that the index equals the folder."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.documents.syncing import compare
from winnow.domain.listing import StoredDocument


def indexed(name: str, digest: str, passages: int = 3) -> StoredDocument:
    return StoredDocument(name=name, hash=digest, passages=passages, expected=3)


def test_documents_are_compared_by_digest() -> None:
    """Only documents with another digest are replaced."""
    plan = compare({"a": "1", "b": "2", "c": "3"}, [indexed("b", "2"), indexed("c", "old")])
    assert (plan.added, plan.replaced, plan.unchanged) == (("a",), ("c",), ("b",))


def test_an_interrupted_replacement_is_repeated() -> None:
    """A document with passages of different digests, or with missing passages, is replaced."""
    plan = compare({"a": "2", "b": "2"}, [indexed("a", ""), indexed("b", "2", passages=2)])
    assert plan.replaced == ("a", "b")


def test_documents_that_cannot_be_read_are_kept() -> None:
    """A file or directory without permission does not look like a deleted one."""
    known = [indexed("a.md", "1"), indexed("dir/b.md", "1"), indexed("dirty.md", "1")]
    assert compare({}, known, unknown=["a.md", "dir"]).removed == ("dirty.md",)
    assert compare({}, known, uploaded={"a.md"}).removed == ("dir/b.md", "dirty.md")


_NAMES = st.text("abc", min_size=1, max_size=2)


@given(
    st.dictionaries(_NAMES, st.sampled_from("12")),
    st.dictionaries(_NAMES, st.sampled_from(["1", "2", ""])),
)
def test_every_document_is_in_one_list(folder: dict[str, str], index: dict[str, str]) -> None:
    """A plan names every document once, and its lists follow from folder and index."""
    plan = compare(folder, [indexed(name, digest) for name, digest in index.items()])
    named = [*plan.added, *plan.replaced, *plan.removed, *plan.unchanged]
    assert sorted(named) == sorted(folder.keys() | index.keys())
    assert all(index[each] == folder[each] for each in plan.unchanged)
    assert set(plan.removed) == index.keys() - folder.keys()
