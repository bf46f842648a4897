"""Metrics of a shard that follows a journal."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class JournalMetrics:
    """How far behind a replica is."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._behind = Gauge(
            "winnow_node_journal_behind_entries",
            "Entries of the journal that this replica has yet to store, when it last heard of it",
            registry=registry,
        )
        self._followed = Gauge(
            "winnow_node_journal_followed",
            "1 while this replica hears from the journal, else 0",
            registry=registry,
        )
        self._place = Gauge(
            "winnow_node_journal_place", "Last entry that this replica stored", registry=registry
        )
        self._entries = Counter(
            "winnow_node_journal_entries", "Entries that this replica stored", registry=registry
        )
        self._expired = Counter(
            "winnow_node_journal_expired_entries",
            "Entries that all replicas skip, because the journal stored them after their expiry",
            registry=registry,
        )

    def followed(self, behind: int) -> None:
        """The journal was heard of, and all that came was stored."""
        self._followed.set(1)
        self._behind.set(behind)

    def applied(self, count: int, place: int, behind: int) -> None:
        """Entries were stored, up to a place."""
        self._entries.inc(count)
        self._place.set(place)
        self._behind.set(behind)

    def expired(self, count: int) -> None:
        """Entries were skipped; they count as stored, too."""
        self._expired.inc(count)

    def lost(self) -> None:
        """The journal cannot be followed."""
        self._followed.set(0)
