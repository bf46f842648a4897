"""Converts the bytes of message fields to arrays."""

import numpy as np
from numpy.typing import NDArray

from winnow.errors import invalid_field

VALUE_BYTES = 4
"""Bytes of a float32 or uint32 value."""


def float32_values(data: bytes, field: str) -> NDArray[np.float32]:
    """Returns little-endian float32 values; raises InvalidRequestError for a wrong size."""
    _check_size(data, field, "float32")
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False)


def uint32_values(data: bytes, field: str) -> NDArray[np.uint32]:
    """Returns little-endian uint32 values; raises InvalidRequestError for a wrong size."""
    _check_size(data, field, "uint32")
    return np.frombuffer(data, "<u4").astype(np.uint32, copy=False)


def _check_size(data: bytes, field: str, kind: str) -> None:
    if len(data) % VALUE_BYTES:
        raise invalid_field(
            field, f"{len(data)} bytes is not a multiple of 4: expected {kind} values"
        )
