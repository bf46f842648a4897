"""The source of a passage, from its metadata."""

from typing import Any

import pytest

from winnow.domain.source import Source, source_of

WHOLE = {
    "document": "manual/policy.pdf",
    "page": 4,
    "heading": "Debian Policy › Archive areas",  # noqa: RUF001
    "url": "https://example.org/policy.pdf",
    "start": 120.0,  # the canonical form of metadata may have floats
    "end": 730,
    "document_hash": "0f",
}


def test_the_source_is_the_document_and_the_place_in_it() -> None:
    source = source_of(WHOLE)
    assert source == Source(
        document="manual/policy.pdf",
        page=4,
        headings=("Debian Policy", "Archive areas"),
        url="https://example.org/policy.pdf",
        start=120,
        end=730,
    )
    assert source.citation == "manual/policy.pdf, page 4, Archive areas"
    assert Source(document="notes.md").citation == "notes.md"


@pytest.mark.parametrize(
    ("name", "value", "absent"),
    [
        *(
            ("page", wrong, {"page": None})
            for wrong in ("4", 4.5, -1, True, 2**32, None, float("nan"))
        ),
        ("heading", ["Debian Policy"], {"headings": ()}),
        ("heading", " ›  › ", {"headings": ()}),  # noqa: RUF001
        ("url", "javascript:alert(1)", {"url": ""}),
        ("url", 7, {"url": ""}),
        ("start", "120", {"start": None, "end": None}),
        ("start", 731, {"start": None, "end": None}),
        ("end", None, {"start": None, "end": None}),
    ],
)
def test_a_value_of_the_wrong_type_counts_as_absent(
    name: str, value: Any, absent: dict[str, Any]
) -> None:
    source = source_of(WHOLE | {name: value})
    assert source is not None
    assert {field: getattr(source, field) for field in absent} == absent
    assert source.document == "manual/policy.pdf"


@pytest.mark.parametrize("document", [None, "", " ", 7, ["a"], {"a": 1}])
def test_without_a_document_there_is_no_source(document: Any) -> None:
    assert source_of(WHOLE | {"document": document}) is None
    assert source_of({}) is None
