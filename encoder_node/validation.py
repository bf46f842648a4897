"""Validates the requests to an encoder node."""

from collections.abc import Sequence

from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import IdentityError, invalid_field
from winnow.quoting import quoted


def check_fingerprint(expected: str, info: EncoderInfo) -> None:
    """Raises IdentityError if the caller expects another encoder."""
    if expected != info.fingerprint:
        raise IdentityError(
            f"the caller expects the encoder {quoted(expected)}, but this server has "
            f"{info.fingerprint} of bundle {info.bundle}: start the front node and this server "
            "with the same bundle"
        )


def check_states(requested: StatesFormat, info: EncoderInfo) -> None:
    """Raises InvalidRequestError if the request needs states and the encoder has none."""
    if requested is not StatesFormat.NONE and not info.width:
        raise invalid_field(
            "states_format", f"the encoder of bundle {info.bundle} gives no token states"
        )


def check_ids(ids: Sequence[int], max_tokens: int, vocabulary: int) -> None:
    """Raises InvalidRequestError if there are too many token ids, or one is out of range."""
    if len(ids) > max_tokens:
        raise invalid_field(
            "token_ids", f"{len(ids)} tokens, but the encoder takes at most {max_tokens}"
        )
    if ids and (greatest := max(ids)) >= vocabulary:
        raise invalid_field(
            "token_ids", f"{greatest} is not a token id: there are {vocabulary} tokens"
        )
