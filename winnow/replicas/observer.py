"""What a pool tells of its replicas and calls, for metrics and logs."""

from collections.abc import Collection


class PoolObserver:
    """Ignores everything; subclasses override what they want to know."""

    def known(self, addresses: Collection[str]) -> None:
        """These replicas get requests from now on."""

    def gone(self, addresses: Collection[str]) -> None:
        """These replicas get no new requests any more."""

    def left(self, address: str) -> None:
        """A replica that is gone has no request in hand any more."""

    def outstanding(self, address: str, requests: int) -> None:
        """A replica has this number of requests in hand."""

    def ejected(self, address: str, first: bool, error: BaseException | None) -> None:
        """A replica was ejected.

        `first`: it was active before, and no failed probe; `error`: of its last request.
        """

    def readmitted(self, address: str) -> None:
        """A replica that was ejected gets requests again."""

    def hedged(self, result: str) -> None:
        """A hedge was sent, won or refused by the budget."""

    def retried(self, result: str) -> None:
        """A retry was sent or won."""
