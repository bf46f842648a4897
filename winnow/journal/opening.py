"""Opens the journal of a shard at a URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import SplitResult, urlsplit

from winnow.errors import UnavailableError
from winnow.journal.expiry import SKEW
from winnow.journal.journal import Journal, ReadsJournalEnds
from winnow.packaged import extra

SCHEMES = ("nats", "tls")


def journal_url(value: str) -> str:
    """Returns `value` if it is empty or the URL of a journal; raises ValueError otherwise."""
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in SCHEMES or not parts.hostname or not _has_valid_port(parts):
        raise ValueError(f"{value!r} is not the URL of a journal: expected nats://HOST:PORT")
    return value


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0  # None is the default port
    except ValueError:
        return False


def open_journal(url: str, index_id: str, shard: int, skew: float = SKEW) -> Journal:
    """Returns the journal of a shard, which connects when it is opened.

    `skew`: limit of seconds between the clocks of writers and of NATS servers. Raises
    UnavailableError if the package nats-py is not installed.
    """
    with _needs_nats():
        from winnow.journal.jetstream import JetStreamJournal  # noqa: PLC0415 (an extra)
    return JetStreamJournal(url, stream_of(index_id, shard), skew)


def open_journal_ends(url: str) -> ReadsJournalEnds:
    """Returns what reads the ends of the journals at a URL; it connects when it reads.

    Raises UnavailableError if the package nats-py is not installed.
    """
    with _needs_nats():
        from winnow.journal.jetstream_ends import JetStreamEnds  # noqa: PLC0415 (an extra)
    return JetStreamEnds(url, stream_of)


def stream_of(index_id: str, shard: int) -> str:
    """Returns the name of the stream of a shard's journal."""
    return f"winnow-{index_id}-{shard:05}"


@contextmanager
def _needs_nats() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise UnavailableError(f"following a journal needs nats-py: {extra('nats')}") from error
