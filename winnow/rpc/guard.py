"""Rejects gRPC calls without a good key.

Health and reflection need no key: probes have none, and the protos are public.
"""

from winnow import caller
from winnow.errors import WinnowError
from winnow.keys.gate import Gate, caller_of
from winnow.keys.key import Scope
from winnow.keys.token import token_of_headers
from winnow.rpc.message_interceptor import Metadata, Reject

_OURS = "winnow."
_SCOPES = {
    "winnow.v1.AnswerService": Scope.ASK,
    "winnow.v1.HeadService": Scope.PREDICT,
    "winnow.v1.FeedService": Scope.FEED,
}
"""Other services need the scope `admin`."""


class Guard:
    """A `Reject` that checks the key, binds the caller to the call, and then asks another one."""

    def __init__(self, gate: Gate, then: Reject) -> None:
        self._gate, self._then = gate, then

    def __call__(self, method: str, metadata: Metadata) -> WinnowError | None:
        """The error that rejects a call of a method like `/winnow.v1.AnswerService/Answer`."""
        service = method.split("/")[1]
        if service.startswith(_OURS):
            scope = _SCOPES.get(service, Scope.ADMIN)
            try:
                key = self._gate.admit(scope, token_of_headers(metadata or ()))
            except WinnowError as error:
                return error
            caller.bind(caller_of(self._gate, key, scope))
        return self._then(method, metadata)
