"""Finds metric labels whose values may come from client input.

The allowed values of each label are listed here, so that a new label needs a review.
"""

import re
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

_STATUSES = (
    "OK|CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|"
    "PERMISSION_DENIED|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|"
    "INTERNAL|UNAVAILABLE|DATA_LOSS|UNAUTHENTICATED"
)
_OUTCOMES = "searched|timeout|unavailable|overloaded|failed|not_loaded|adaptive"
_SELF_DESCRIPTION = r"[\w.+:() -]{1,100}"
"""Values that a process reports about itself, such as its version or the name of its bundle."""
ALLOWED_VALUES = {
    "method": "Answer(s|OfMany)?|Predict|ListHeads|GetCluster|ListShards|GetShardInfo|Retrieve"
    "|Read|Search",
    "status": f"{_STATUSES}|{_OUTCOMES}",
    "stage": "queue|tokenise|encode|retrieve|read|merge|heads",
    "outcome": "stored|unchanged|outdated",
    "result": "hit|miss|granted|dimmed|refused|admitted|sent|won|ok|unknown|late|other_encoder|"
    "done|failed|loaded|replaced|broken|no_room|unreachable",
    "reason": "slow|idle|crowded|unread|index|encoder|candidates",
    "limit": "passages|bytes|questions_per_second|writes_per_second",
    "ring": _SELF_DESCRIPTION,
    "shard": r"\d{1,5}",
    "replica": r"[\w.:\[\]-]+:\d{1,5}",
    "bundle": _SELF_DESCRIPTION,
    "model": _SELF_DESCRIPTION,
    "runtime": _SELF_DESCRIPTION,
    "chosen_by": "setting|only|flags|measured",
    "le": r"\+Inf|[\d.e+-]+",
    "generation": "[012]",
    "name": _SELF_DESCRIPTION,
    "version": _SELF_DESCRIPTION,
    "fingerprint": "[0-9a-f]{8,64}",
    "grpc": _SELF_DESCRIPTION,
    "implementation": _SELF_DESCRIPTION,
    "major": r"\d+",
    "minor": r"\d+",
    "patchlevel": _SELF_DESCRIPTION,
}
"""Regular expression of the allowed values of each label."""


def unexpected_labels(exposition: str) -> Iterator[str]:
    """Yields the labels with unknown names or values in a page of metrics, as NAME=VALUE."""
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            for name, value in sample.labels.items():
                if not re.fullmatch(ALLOWED_VALUES.get(name, "(?!)"), value):
                    yield f"{name}={value[:50]}"
