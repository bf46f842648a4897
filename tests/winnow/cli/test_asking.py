"""Failures are counted by status, with what the first of each said."""

from winnow.cli.asking import count_failures


def test_the_most_frequent_status_comes_first() -> None:
    found = count_failures(["INTERNAL: once", "UNAVAILABLE: a: b", "UNAVAILABLE: c", "no status"])
    assert list(found.errors.items()) == [("UNAVAILABLE", 2), ("INTERNAL", 1), ("no status", 1)]
    assert found.lines()[0] == "2 failed: UNAVAILABLE: a: b"


def test_no_failures_have_no_lines() -> None:
    assert count_failures([]).lines() == []
