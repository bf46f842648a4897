"""Refuses calls before their messages are read. Each service adds its own rule.

This module knows names of services and keys of clients. It does not know the rules.
"""

from collections.abc import Callable

from winnow.errors import WinnowError
from winnow.rpc import client_key
from winnow.rpc.message_interceptor import Metadata

Refusal = Callable[[str], WinnowError | None]
"""A rule: takes the key of a client; returns the error that refuses its call, or None."""


class EarlyRejection:
    """Applies the rule of each service. A service without a rule refuses no call."""

    def __init__(self) -> None:
        self._refusals: dict[str, Refusal] = {}

    def add(self, service: str, refusal: Refusal) -> None:
        """Adds the rule of a service. `service` is its full name, as `winnow.v1.AnswerService`."""
        self._refusals[service] = refusal

    def __call__(self, method: str, metadata: Metadata) -> WinnowError | None:
        """Returns the error that refuses a call, or None.

        `method` is the path of the call, such as `/winnow.v1.AnswerService/Answer`.
        """
        return self.refusal(method.split("/")[1], client_key.of_metadata(metadata))

    def refusal(self, service: str, client: str) -> WinnowError | None:
        """Returns the error that refuses a call to `service`, or None. `client` is the key of the
        client.
        """
        rule = self._refusals.get(service)
        return rule(client) if rule else None
