"""Rejects gRPC calls without a valid key.

Health checks and reflection need no key, because probes have none and the protos are public.
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
    "winnow.v1.PassageService": Scope.ASK,
    "winnow.v1.HeadService": Scope.PREDICT,
    "winnow.v1.ReadService": Scope.READ,
    "winnow.v1.FeedService": Scope.FEED,
}
"""Scopes by service; other services need the scope `admin`."""


class KeyGuard:
    """A `Reject` that checks the key of a call, binds its caller, and then applies `next_check`."""

    def __init__(self, gate: Gate, next_check: Reject) -> None:
        self._gate, self._next_check = gate, next_check

    def __call__(self, method: str, metadata: Metadata) -> WinnowError | None:
        """Returns the error that rejects a call; None to accept the call.

        `method`: path of the method, such as `/winnow.v1.AnswerService/Answer`.
        """
        service = method.split("/")[1]
        if service.startswith(_OURS):
            scope = _SCOPES.get(service, Scope.ADMIN)
            try:
                key = self._gate.admit(scope, token_of_headers(metadata or ()))
            except WinnowError as error:
                return error
            caller.bind(caller_of(self._gate, key, scope))
        return self._next_check(method, metadata)
