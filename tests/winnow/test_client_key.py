"""Who asks, by a key that the caller sends."""

from typing import Any

import pytest

from winnow.rpc.client_key import KEY, of_metadata, outgoing_metadata


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


def test_a_key_arrives_and_is_nobody_else_s_however_long_it_has_grown() -> None:
    """Texts of clients with keys of 57 characters or more used to wait in one line with all who
    have no key, at encoder and head servers: their turn is the key with ":predict" behind it.
    """
    names = ["anna", *(f"{who}{'x' * 63}:predict" for who in "ab")]
    arrived = [of_metadata(outgoing_metadata(name)) for name in names]
    assert arrived[0] == "anna"
    assert all(arrived)
    assert len(set(arrived)) == len(names)
