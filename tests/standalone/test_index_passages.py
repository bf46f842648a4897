"""The passages of an index with real models, in the process of a program."""

import shutil
from collections.abc import Collection
from pathlib import Path
from random import Random

import pytest
from conftest import QUESTIONS
from tenacious import LONG

from winnow import Index
from winnow.client import PassageFields, StoredDocument
from winnow.errors import InvalidRequestError, NotWritableError

pytestmark = pytest.mark.bundle


def piece(number: int, year: int = 2031) -> PassageFields:
    return {
        "id": f"report.pdf#{number}",
        "title": "Report › Prizes",  # noqa: RUF001
        "text": f"The Zorblax Prize number {number} was won by Marta Quendelheim.",
        "metadata": {
            "document": "report.pdf",
            "document_hash": "ab",
            "document_passages": 3,
            "page": number + 1,
            "year": year,
        },
    }


@pytest.fixture
def directory(indexes: dict[int, Path], tmp_path: Path) -> Path:
    """A copy of an index of two shards, which may be written to."""
    return Path(shutil.copytree(indexes[2], tmp_path / "index"))


def test_a_search_finds_the_passages_that_an_answer_reads(indexes: dict[int, Path]) -> None:
    with Index.open(indexes[2]) as index:
        for question, _ in QUESTIONS:
            reply = index.ask(question, passages_to_read=3, answers=3, max_loss=0, timeout=LONG)
            found = index.search(question, passages=3, timeout=LONG)
            read = {(each.passage.id, each.distance, each.words) for each in reply.answers}
            ranked = {(each.passage.id, each.distance, each.words) for each in found.passages}
            assert read <= ranked
            assert found.coverage.complete
            order = [each.hybrid_distance for each in found.passages]
            assert order == sorted(order)
            assert [each.score for each in found.passages] == [-each for each in order]


def test_fed_passages_are_searched_listed_and_deleted(directory: Path) -> None:
    with Index.open(directory, writable=True) as index:
        before = index.count_passages()
        index.put([piece(number, 2031 + number) for number in range(3)])
        assert index.count_passages() == before + 3
        found = index.search("Who won the Zorblax Prize?", where='document = "report.pdf"')
        assert len(found.passages) == 3
        best = found.passages[0]
        words = [best.passage.text[start:end] for start, end in best.highlights]
        assert words == ["Zorblax", "Prize", "won"]
        assert best.source is not None
        assert best.source.citation.startswith("report.pdf, page ")
        listed = list(index.list_passages(where="year >= 2032", fields=["metadata"]))
        assert [each.id for each in listed] == ["report.pdf#1", "report.pdf#2"]
        assert listed[0].metadata["page"] == 2
        document = StoredDocument(name="report.pdf", passages=3, hash="ab", expected=3)
        assert list(index.list_documents()) == [document]
        index.merge()
        assert list(index.list_documents()) == [document]
        assert index.delete_where("year = 2031", dry_run=True).matched == 1
        done = index.delete_where("year = 2031")
        assert (done.matched, done.deleted, done.complete) == (1, 1, True)
        assert index.get_passages("report.pdf#0") == {}
        assert index.delete_where(document="report.pdf").deleted == 2
        assert index.delete_where(document="report.pdf").deleted == 0
        assert index.count_passages(after=done.positions) == before
        every = [each.id for each in index.list_passages()]
        assert len(every) == before
        assert every == sorted(every, key=str.encode)


def test_pages_go_on_over_writes_and_merges(directory: Path) -> None:
    """Passages that stay are listed once, from memory, from merged files and from both."""
    chance = Random(7)
    stays = {f"s#{number:02}" for number in range(40)}

    def put(index: Index, ids: Collection[str]) -> None:
        index.put([{"id": each, "text": f"Text of {each}.", "metadata": {"a": 1}} for each in ids])

    with Index.open(directory, writable=True) as index:
        put(index, stays)
        found: list[str] = []
        token = ""
        for number in range(100):
            page = index.list_page(token, page_size=7, where="a = 1", fields=["id"])
            found += [each.id for each in page.passages]
            if not (token := page.next_page_token):
                break
            others = [f"{chance.choice('rst')}#{chance.randint(50, 99)}" for _ in range(5)]
            put(index, others)
            index.delete(others[:2])
            if number in (1, 3):
                index.merge()
    assert not token
    assert len(found) == len(set(found))
    assert stays <= set(found)


def test_an_index_that_is_only_read_deletes_nothing_and_wrong_searches_are_named(
    indexes: dict[int, Path],
) -> None:
    with Index.open(indexes[1]) as index:
        with pytest.raises(NotWritableError):
            index.delete_where("year = 1")
        for options, name in (({"passages": 0}, "passages"), ({"passages": 101}, "passages")):
            with pytest.raises(InvalidRequestError, match=f"^{name}: "):
                index.search("Who?", **options)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequestError, match=r"^question: "):
            index.search("")
