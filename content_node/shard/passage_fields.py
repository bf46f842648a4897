"""Which of a few passages in memory a filter lets through: each passage is asked."""

import json
from collections.abc import Sequence

import numpy as np

from content_node.shard.masks import Masks, Rows
from winnow.domain.shard import MOST_FIELDS
from winnow.filtering import Fields, Filter, fields_of

_NONE: Fields = {}
_BUDGET = 1 << 20
"""Bytes of masks: there may be a dozen segments in memory."""


class PassageFields:
    """The metadata of some passages, as filters see it. Safe to use from several threads."""

    def __init__(self, metadata: Sequence[str]) -> None:
        """JSON objects, one for each row; empty for a row that has none. Some microseconds each."""
        self._fields = [fields_of(json.loads(each)) if each else _NONE for each in metadata]
        names = sorted({name for fields in self._fields for name in fields})
        self.names = tuple(names[:MOST_FIELDS])
        """Of fields, in order."""
        self._masks = Masks(len(metadata), _BUDGET)

    def where(self, expression: str) -> Rows:
        """The rows that a filter lets through, [rows]; the array is the caller's.

        Raises:
            InvalidRequestError: it is no filter.

        """
        return self._masks.where(expression, self._mask)

    def _mask(self, wanted: Filter) -> Rows:
        return np.fromiter(map(wanted.holds, self._fields), np.bool_, len(self._fields))
