"""The gate as gRPC asks it: a door that wants a key before all else.

Health and reflection need no key: probes have none, and the protos are public.
"""

from winnow import caller
from winnow.errors import WinnowError
from winnow.keys.gate import Gate, identified
from winnow.keys.key import Scope
from winnow.keys.token import of_headers
from winnow.rpc.message_interceptor import Door, Metadata

_OURS = "winnow."
_SCOPES = {
    "winnow.v1.AnswerService": Scope.ASK,
    "winnow.v1.HeadService": Scope.PREDICT,
    "winnow.v1.FeedService": Scope.FEED,
}
"""What else there may be is for administrators."""


class Guard:
    """Binds the caller to the call; then asks the door behind."""

    def __init__(self, gate: Gate, behind: Door) -> None:
        self._gate, self._behind = gate, behind

    def __call__(self, method: str, metadata: Metadata) -> WinnowError | None:
        """Why a call is refused; `method` is such as `/winnow.v1.AnswerService/Answer`."""
        service = method.split("/")[1]
        if service.startswith(_OURS):
            scope = _SCOPES.get(service, Scope.ADMIN)
            try:
                key = self._gate.enter(scope, of_headers(metadata or ()))
            except WinnowError as error:
                return error
            caller.bind(identified(self._gate, key, scope))
        return self._behind(method, metadata)
