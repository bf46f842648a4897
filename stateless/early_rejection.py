"""Refuses calls before their messages are read: each service of a front may have a rule.

Knows names of services and keys of clients; each service says by itself whom it refuses.
"""

from collections.abc import Callable

from winnow.errors import WinnowError
from winnow.rpc import client_key
from winnow.rpc.message_interceptor import Metadata

Refusal = Callable[[str], WinnowError | None]
"""Why a client is refused now, by its key; None if it is not."""


class EarlyRejection:
    """The rules of a server, by service; a service without a rule is open."""

    def __init__(self) -> None:
        self._refusals: dict[str, Refusal] = {}

    def add(self, service: str, refusal: Refusal) -> None:
        """Adds the rule of a service; `service` is its full name."""
        self._refusals[service] = refusal

    def __call__(self, method: str, metadata: Metadata) -> WinnowError | None:
        """Why a call is refused; `method` is such as `/winnow.v1.AnswerService/Answer`."""
        return self.refusal(method.split("/")[1], client_key.of_metadata(metadata))

    def refusal(self, service: str, client: str) -> WinnowError | None:
        """Why a client is refused by a service; `client` is its key."""
        refusal = self._refusals.get(service)
        return refusal(client) if refusal else None
