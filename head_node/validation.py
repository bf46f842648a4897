"""What a head node accepts from a front node."""

from collections.abc import Sequence

from winnow.errors import IdentityError, InvalidRequestError, Violation
from winnow.heads.manifest import EncoderEntry, validate_head_id
from winnow.quoting import quoted

MOST_HEADS = 32


def check_encoder(asked: str, encoder: EncoderEntry) -> None:
    """Raises IdentityError if the states are said to be of another encoder."""
    if asked != encoder.fingerprint:
        raise IdentityError(
            f"the states are of encoder {quoted(asked)}, the heads of this server are of "
            f"{encoder.fingerprint} ({encoder.name}): ask a server of that encoder group, or train "
            "the heads for this encoder"
        )


def check_heads(ids: Sequence[str]) -> tuple[str, ...]:
    """The ids; raises InvalidRequestError unless they are 1 to 32, distinct, and possible."""
    if not 1 <= len(ids) <= MOST_HEADS:
        raise _wrong(f"{len(ids)} heads; name 1 to {MOST_HEADS}")
    if len(set(ids)) != len(ids):
        raise _wrong("a head is named twice")
    for each in ids:
        try:
            validate_head_id(each)
        except ValueError as error:
            raise _wrong(str(error)) from error
    return tuple(ids)


def _wrong(description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation("head_ids", description))
