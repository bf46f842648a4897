"""Which requests an encoder node accepts. A request that passes can be encoded."""

from collections.abc import Sequence

from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import IdentityError, InvalidRequestError, Violation
from winnow.quoting import quoted


def check_fingerprint(asked: str, info: EncoderInfo) -> None:
    """Raises IdentityError if the caller expects another encoder."""
    if asked != info.fingerprint:
        raise IdentityError(
            f"the caller expects the encoder {quoted(asked)}, this server has {info.fingerprint} "
            f"of bundle {info.bundle}: give both the same bundle"
        )


def check_states(asked: StatesFormat, info: EncoderInfo) -> None:
    """Raises InvalidRequestError if states are asked for and there are none."""
    if asked is not StatesFormat.NONE and not info.width:
        raise InvalidRequestError(
            Violation("states_format", f"the encoder of bundle {info.bundle} gives no token states")
        )


def check_ids(ids: Sequence[int], most: int, vocabulary: int) -> None:
    """Raises InvalidRequestError if there are too many token ids, or one is none."""
    if len(ids) > most:
        raise InvalidRequestError(
            Violation("token_ids", f"{len(ids)} tokens, the encoder takes at most {most}")
        )
    if ids and (greatest := max(ids)) >= vocabulary:
        raise InvalidRequestError(
            Violation("token_ids", f"{greatest} is no token: the encoder knows {vocabulary}")
        )
