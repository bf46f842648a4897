"""Metrics of a shard that follows a journal."""

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import MetricFactory


class JournalMetrics:
    """Metrics of a replica's progress in its journal."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._behind = make.gauge(
            "winnow_node_journal_behind_entries",
            "Journal entries that this replica has not stored yet, as of its last contact with the "
            "journal",
        )
        self._followed = make.gauge(
            "winnow_node_journal_followed",
            "1 while this replica is in contact with the journal, else 0",
        )
        self._place = make.gauge(
            "winnow_node_journal_place",
            "Sequence number of the last journal entry that this replica stored",
        )
        self._entries = make.counter(
            "winnow_node_journal_entries",
            "Journal entries that this replica has stored since its start",
        )
        self._expired = make.counter(
            "winnow_node_journal_expired_entries",
            "Journal entries that all replicas skip, because the journal stored them after their "
            "expiry",
        )

    def record_followed(self, behind: int) -> None:
        """Records that all delivered entries are stored; `behind` more are in the journal."""
        self._followed.set(1)
        self._behind.set(behind)

    def record_applied(self, count: int, last: int, behind: int) -> None:
        """Records that entries up to the entry `last` were stored; `behind` more are to come."""
        self._entries.inc(count)
        self._place.set(last)
        self._behind.set(behind)

    def record_expired(self, count: int) -> None:
        """Records that expired entries were skipped. They also count as stored."""
        self._expired.inc(count)

    def record_lost(self) -> None:
        """Records that the journal cannot be followed for now."""
        self._followed.set(0)
