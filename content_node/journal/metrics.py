"""Metrics of a shard that follows a journal."""

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import MetricFactory


class JournalMetrics:
    """How far behind a replica is."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._behind = make.gauge(
            "winnow_node_journal_behind_entries",
            "Entries of the journal that this replica has yet to store, when it last heard of it",
        )
        self._followed = make.gauge(
            "winnow_node_journal_followed", "1 while this replica hears from the journal, else 0"
        )
        self._place = make.gauge("winnow_node_journal_place", "Last entry that this replica stored")
        self._entries = make.counter(
            "winnow_node_journal_entries", "Entries that this replica stored"
        )
        self._expired = make.counter(
            "winnow_node_journal_expired_entries",
            "Entries that all replicas skip, because the journal stored them after their expiry",
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
