"""When entries of a journal expire."""

from datetime import UTC, datetime

import pytest

from winnow.errors import DeadlineExceededError
from winnow.journal.expiry import MAX_PUBLISH_SECONDS, PublishWindow, has_expired

NOW = 1_764_000_000.0


@pytest.mark.parametrize(
    ("left", "skew", "seconds", "expires"),
    [
        (60.0, 1.0, MAX_PUBLISH_SECONDS + 1.0, MAX_PUBLISH_SECONDS),
        (60.0, 0.0, MAX_PUBLISH_SECONDS, MAX_PUBLISH_SECONDS),
        (60.0, 5.0, MAX_PUBLISH_SECONDS + 5.0, MAX_PUBLISH_SECONDS),
        (1.5, 1.0, 1.5, 0.5),
    ],
)
def test_an_entry_expires_by_the_skew_before_its_writer_gives_up(
    left: float, skew: float, seconds: float, expires: float
) -> None:
    assert PublishWindow.starting(NOW, left, skew) == PublishWindow(seconds, NOW + expires)


@pytest.mark.parametrize("left", [1.0, 0.0, -3.0])
def test_a_writer_with_less_time_than_clocks_may_differ_does_not_begin(left: float) -> None:
    with pytest.raises(DeadlineExceededError, match=r"may differ by 1 seconds.*journal-skew"):
        PublishWindow.starting(NOW, left, skew=1.0)


@pytest.mark.parametrize(
    ("header", "stored", "expected"),
    [
        ("1764000000500", NOW + 0.499, False),
        ("1764000000500", NOW + 0.5, False),
        ("1764000000500", NOW + 0.501, True),
        ("", NOW, False),
        ("tomorrow", NOW, False),
    ],
)
def test_an_entry_has_expired_if_it_was_stored_later_than_its_header_says(
    header: str, stored: float, expected: bool
) -> None:
    assert has_expired(header, datetime.fromtimestamp(stored, UTC)) is expected


def test_a_header_is_read_as_it_was_written() -> None:
    header = PublishWindow.starting(NOW, 60.0, 1.0).header
    assert not has_expired(header, datetime.fromtimestamp(NOW + MAX_PUBLISH_SECONDS - 0.01, UTC))
    assert has_expired(header, datetime.fromtimestamp(NOW + MAX_PUBLISH_SECONDS + 0.01, UTC))
