"""The parts of `winnow feed`: batches, what is durable, where to go on, when to try again."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.cli.feed.batches import BYTES_PER_CHARACTER, MAX_TEXT_BYTES, FeedBatch, batch_rows
from winnow.cli.feed.in_flight import Ledger
from winnow.cli.feed.job import FeedProgress
from winnow.cli.feed.resuming import FeedOptions, FeedSource, ResumeFile, beside
from winnow.cli.feed.source import read_rows
from winnow.cli.retrying import backoff
from winnow.client.feeding import put_call
from winnow.domain.passage import Passage
from winnow.domain.quota import StorageQuota, StorageUse, TenantUsage
from winnow.domain.write import Put
from winnow.errors import ArtefactError
from winnow.passages.rows import BadRow, Row
from winnow.passages.validation import MAX_METADATA
from winnow.stateless.feed.servicer import MAX_MESSAGE_BYTES

SCALARS = st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text()


def row(line: int, name: str = "", text: str = "words") -> Row:
    return Row(line, Put(Passage(name or f"p{line}", "T", text, '{"year": 2015}'), 7))


def resume_file(
    directory: Path, *, cut: bool = False, delete: bool = False, index: str = "", tenant: str = ""
) -> ResumeFile:
    return ResumeFile(directory / "p.jsonl.feeding", FeedOptions(cut, delete, index, tenant))


def through(made: list[FeedBatch]) -> list[tuple[int, int]]:
    return [(len(each.rows), each.last_line) for each in made]


def test_rows_are_sent_some_at_a_time_in_their_order() -> None:
    made = list(batch_rows(map(row, range(1, 8)), 3))
    assert through(made) == [(3, 3), (3, 6), (1, 7)]
    assert [name for each in made for name in each.ids] == [f"p{n}" for n in range(1, 8)]
    assert made[0].fields()[0] == {
        "id": "p1",
        "title": "T",
        "text": "words",
        "metadata": {"year": 2015},
        "version": 7,
    }


def test_a_request_is_never_larger_than_a_message_may_be() -> None:
    rows = [row(line, text="é" * 50_000) for line in range(1, 31)]
    made = list(batch_rows(rows, 100))
    assert through(made)[0] == (6, 6)
    assert all(sum(len(r.passage.text.encode()) for r in b.rows) <= MAX_TEXT_BYTES for b in made)


@pytest.mark.parametrize("value", [[1] * 3_300, [True] * 1_600, [""] * 2_400, ["é"] * 900])
def test_metadata_counts_as_it_is_packed(value: list[object]) -> None:
    metadata = json.dumps({"values": value})
    assert len(metadata) <= MAX_METADATA
    rows = [Row(n, Put(Passage(f"p{n}", "", "x" * 7_000, metadata))) for n in range(100)]
    for made in batch_rows(rows, 100):
        assert put_call(made.fields()).request.ByteSize() < MAX_MESSAGE_BYTES


@given(st.dictionaries(st.text(min_size=1), SCALARS | st.lists(SCALARS)))
def test_metadata_takes_no_more_than_it_counts(metadata: dict[str, Any]) -> None:
    message = put_call({"id": "", "text": "", "metadata": metadata}).request.passages[0].metadata
    assert message.ByteSize() <= BYTES_PER_CHARACTER * len(json.dumps(metadata))


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize(("tenant", "bad"), [("acme", [2, 4]), ("7", [1, 2]), ("", [1, 2, 4])])
def test_a_row_of_another_tenant_is_neither_fed_nor_deleted(
    tmp_path: Path, tenant: str, bad: list[int], delete: bool
) -> None:
    """Otherwise a feed with the key of a tenant would store the passages of all as its own."""
    path = tmp_path / "rows.jsonl"
    names = ("acme", "globex", None, 7)
    rows = [{"id": "a", "text": "words", "tenant": name} for name in names]
    rows.append({"id": "b", "text": "words"})
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    read = list(read_rows(path, None, cut=False, delete=delete, tenant=tenant))
    refused = [row for row in read if isinstance(row, BadRow)]
    assert [row.line for row in refused] == bad
    assert all("with --tenant" in row.reason for row in refused)


def test_a_line_is_done_with_its_last_passage() -> None:
    rows = [row(1, f"doc#{n}") for n in range(5)] + [row(2, "other#0")]
    made = list(batch_rows(rows, 2, documents=True))
    assert through(made) == [(2, 0), (2, 0), (2, 2)]
    assert [each.deletion_starts for each in made] == [(), (), ("doc#5", "other#1")]


def test_an_id_comes_once_in_a_batch() -> None:
    made = list(batch_rows([row(1, "a"), row(2, "b"), row(3, "a"), row(4, "c")], 9))
    assert [each.ids for each in made] == [("a", "b"), ("a", "c")]
    assert through(made) == [(2, 2), (2, 4)]


def test_surplus_passages_are_deleted_before_the_document_comes_again_longer() -> None:
    rows = [row(1, f"doc#{n}") for n in range(2)] + [row(2, f"doc#{n}") for n in range(4)]
    made = list(batch_rows(rows, 9, documents=True))
    assert [each.deletion_starts for each in made] == [("doc#2",), ("doc#4",)]
    assert made[1].ids == ("doc#0", "doc#1", "doc#2", "doc#3")


def test_the_line_that_all_is_durable_up_to_waits_for_the_slowest() -> None:
    ledger = Ledger(10)
    first, second, third = (ledger.begin_batch() for _ in range(3))
    ledger.finish_batch(second, 30)
    assert ledger.line == 10
    ledger.finish_batch(first, 20)
    assert ledger.line == 30
    ledger.finish_batch(third, 30)
    assert ledger.line == 30


@given(st.permutations(range(8)))
def test_no_line_is_called_durable_before_all_lines_up_to_it_are(order: list[int]) -> None:
    ledger, ended = Ledger(), set()
    numbers = [ledger.begin_batch() for _ in order]
    for place in order:
        ledger.finish_batch(numbers[place], place + 1)
        ended.add(place)
        assert ledger.line == next((n for n in range(9) if n not in ended), 8)


@pytest.mark.parametrize(
    ("attempt", "chance", "wanted", "expected"),
    [
        (1, 0.0, 0.0, 0.1),
        (1, 1.0, 0.0, 0.2),
        (3, 1.0, 0.0, 0.8),
        (99, 1.0, 0.0, 5.0),
        (1, 0.0, 2.0, 2.1),
    ],
)
def test_pauses_grow_and_differ(
    attempt: int, chance: float, wanted: float, expected: float
) -> None:
    assert backoff(attempt, chance, wanted) == pytest.approx(expected)


def test_a_place_is_found_again_even_if_the_source_has_grown(tmp_path: Path) -> None:
    source, place = tmp_path / "p.jsonl", resume_file(tmp_path)
    assert place.read(source) == 0
    source.write_text("one\n")
    place.write(1, FeedSource.of(source))
    source.write_text("one\ntwo\n")
    assert place.read(source) == 1
    place.remove()
    place.remove()
    assert place.read(source) == 0


def test_each_index_and_each_tenant_has_its_own_place(tmp_path: Path) -> None:
    names = ["", "a", "b"]
    source, tenants = tmp_path / "p.jsonl", [*names, "a.b", "b.feeding"]
    places = {beside(source, index, tenant) for index in names for tenant in tenants}
    assert len(places) == len(names) * len(tenants)
    assert beside(source, "", "") == tmp_path / "p.jsonl.feeding"


def test_a_place_in_another_source_or_with_other_options_is_refused(tmp_path: Path) -> None:
    """Otherwise rows would be left out."""
    source, place = tmp_path / "p.jsonl", resume_file(tmp_path, cut=True, index="docs")
    source.write_text("one\n")
    place.write(1, FeedSource.of(source))
    others: list[dict[str, Any]] = [
        {"index": "docs"},
        {"cut": True},
        {"cut": True, "tenant": "docs"},
        {"cut": True, "index": "docs", "tenant": "acme"},
        {"cut": True, "index": "docs", "delete": True},
    ]
    for options in others:
        with pytest.raises(ArtefactError, match="another source or other options"):
            resume_file(tmp_path, **options).read(source)
    source.write_text("two\n")
    with pytest.raises(ArtefactError, match="another source"):
        place.read(source)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"line": "x"}', '{"line": 1, "source": {"a": 1}}']
)
def test_a_damaged_place_is_named(tmp_path: Path, content: str) -> None:
    place = resume_file(tmp_path)
    place.path.write_text(content)
    with pytest.raises(ArtefactError, match="remove it to start again"):
        place.read(None)


def test_a_feed_says_once_that_most_of_a_quota_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    with FeedProgress() as progress:
        for passages in (90, 91, 92):
            progress.show_use(StorageUse(TenantUsage(passages, 5_000), StorageQuota(100, 10_000)))
    shown = capsys.readouterr().err
    assert shown.count("quota") == 1
    assert "the tenant stores 91 passages, and its quota is 100" in shown
