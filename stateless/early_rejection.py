"""Refuses calls before their messages are read, by a rule of each service.

Knows names of services and keys of clients; does not know the rules.
"""

from collections.abc import Callable

from winnow.errors import WinnowError
from winnow.rpc import client_key
from winnow.rpc.message_interceptor import Metadata

Refusal = Callable[[str], WinnowError | None]
"""A rule: returns the error of a client, by its key, or None to read its message."""


class EarlyRejection:
    """Applies the rule of each service; a service without a rule refuses no call."""

    def __init__(self) -> None:
        self._refusals: dict[str, Refusal] = {}

    def add(self, service: str, refusal: Refusal) -> None:
        """Adds the rule of a service; `service` is its full name, with the package."""
        self._refusals[service] = refusal

    def __call__(self, method: str, metadata: Metadata) -> WinnowError | None:
        """The error of a call, or None; `method`: such as `/winnow.v1.AnswerService/Answer`."""
        return self.refusal(method.split("/")[1], client_key.of_metadata(metadata))

    def refusal(self, service: str, client: str) -> WinnowError | None:
        """The error of a call of a client to a service, or None; `client` is the client's key."""
        rule = self._refusals.get(service)
        return rule(client) if rule else None
