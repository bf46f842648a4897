"""Validates the requests to a head node."""

from collections.abc import Sequence

from winnow.errors import IdentityError, InvalidRequestError, invalid_field
from winnow.heads.manifest import EncoderEntry, validate_head_id
from winnow.quoting import quoted

MAX_HEADS = 32


def check_encoder(fingerprint: str, encoder: EncoderEntry) -> None:
    """Raises IdentityError if the states were made by another encoder."""
    if fingerprint != encoder.fingerprint:
        raise IdentityError(
            f"the token states are of encoder {quoted(fingerprint)}, but the heads of this server "
            f"were trained on {encoder.fingerprint} ({encoder.name}): use the "
            "same encoder in the front node and for the heads"
        )


def check_heads(ids: Sequence[str]) -> tuple[str, ...]:
    """Returns the ids; raises InvalidRequestError unless they are 1 to 32 distinct, valid ids."""
    if not 1 <= len(ids) <= MAX_HEADS:
        raise _invalid_heads(f"{len(ids)} heads; name 1 to {MAX_HEADS}")
    if len(set(ids)) != len(ids):
        raise _invalid_heads("a head is named twice: name each head once")
    for each in ids:
        try:
            validate_head_id(each)
        except ValueError as error:
            raise _invalid_heads(str(error)) from error
    return tuple(ids)


def _invalid_heads(description: str) -> InvalidRequestError:
    return invalid_field("head_ids", description)
