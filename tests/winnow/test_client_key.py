"""Who asks, by a key that the caller sends."""

from typing import Any

import pytest

from winnow.rpc.client_key import KEY, of_metadata


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        (None, ""),
        ([("x-request-id", "1")], ""),
        ([(KEY, "tenant-7")], "tenant-7"),
        ([(KEY, "anna@example.org")], "anna@example.org"),
        ([(KEY, "log\ninjection")], ""),
        ([(KEY, "x" * 65)], ""),
        ([(KEY, b"bytes")], ""),
    ],
)
def test_only_a_plain_key_counts(metadata: Any, key: str) -> None:
    assert of_metadata(metadata) == key
