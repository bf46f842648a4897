"""Finds metric labels whose values may come from client input. Pure.

The values of each label are listed here, so that a new label must be reviewed.
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
_OWN = r"[\w.+:() -]{1,100}"
"""What a process reports about itself: its version, the name of its bundle."""
KNOWN = {
    "method": "Answer(s|OfMany)?|Predict|ListHeads|GetCluster|GetShardInfo|Retrieve|Read|Search",
    "status": f"{_STATUSES}|{_OUTCOMES}",
    "stage": "queue|tokenise|encode|retrieve|read|merge|heads",
    "outcome": "stored|unchanged|outdated",
    "result": "hit|miss|granted|dimmed|refused|admitted|sent|won|ok|unknown|late|other_encoder|"
    "done|failed|loaded|replaced|broken|no_room|unreachable",
    "reason": "slow|idle|crowded|unread",
    "ring": _OWN,
    "shard": r"\d{1,5}",
    "replica": r"[\w.:\[\]-]+:\d{1,5}",
    "bundle": _OWN,
    "model": _OWN,
    "runtime": _OWN,
    "chosen_by": "setting|only|flags|measured",
    "le": r"\+Inf|[\d.e+-]+",
    "generation": "[012]",
    "name": _OWN,
    "version": _OWN,
    "fingerprint": "[0-9a-f]{8,64}",
    "grpc": _OWN,
    "implementation": _OWN,
    "major": r"\d+",
    "minor": r"\d+",
    "patchlevel": _OWN,
}
"""The values of each label, as a regular expression."""


def strange(exposition: str) -> Iterator[str]:
    """Yields unknown labels of a page of metrics, as NAME=VALUE."""
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            for name, value in sample.labels.items():
                if not re.fullmatch(KNOWN.get(name, "(?!)"), value):
                    yield f"{name}={value[:50]}"
