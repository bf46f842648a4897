"""Receives the events of a pool of replicas, for metrics and logs."""

from collections.abc import Collection


class PoolObserver:
    """Ignores every event. Subclasses override the methods of the events that they record."""

    def on_members(self, addresses: Collection[str]) -> None:
        """The pool was updated: only these replicas get new requests."""

    def on_removed(self, addresses: Collection[str]) -> None:
        """These replicas were removed and get no new requests."""

    def on_drained(self, address: str) -> None:
        """The last running request of a removed replica has ended."""

    def on_outstanding(self, address: str, requests: int) -> None:
        """The number of running requests of a replica changed to `requests`."""

    def on_ejected(self, address: str, first: bool, error: BaseException | None) -> None:
        """A replica was ejected.

        `first`: whether the replica was active before; False after a failed probe. `error`: the
        error of its last request, if that request failed.
        """

    def on_readmitted(self, address: str) -> None:
        """An ejected replica gets requests again."""

    def on_hedge(self, result: str) -> None:
        """A hedge was sent, answered first, or was refused by the budget.

        `result` is "sent", "won" or "refused".
        """

    def on_retry(self, result: str) -> None:
        """A retry was sent, or returned the result of the call; `result` is "sent" or "won"."""
