"""Parses a value of --rings: NAME=BUNDLE,STORE or NAME=BUNDLE. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
_GROUP = re.compile(rf"({_NAME})=([^,]+)(?:,(.+))?")
_GROUP_START = re.compile(rf"{_NAME}=.*")


@dataclass(frozen=True, slots=True)
class EncoderGroupSetting:
    """A further encoder group, as a value of --rings sets it."""

    name: str
    bundle: Path
    """Directory of the bundle that has the group's encoder."""
    store: str
    """Store of the group's heads, a directory or a URL; empty if the heads run on head servers."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses NAME=BUNDLE,STORE or NAME=BUNDLE; raises ValueError for any other text."""
        match = _GROUP.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{text!r} is not an encoder group: expected NAME=BUNDLE,STORE, such as "
                "de=bundles/german,heads/german, with a name of a-z, 0-9, dot, dash and underscore"
            )
        return cls(match[1], Path(match[2]), match[3] or "")


def join_split_groups(parts: Iterable[str]) -> list[str]:
    """Joins values that were split at their own comma, as a comma also separates values."""
    groups: list[str] = []
    for part in parts:
        if groups and not _GROUP_START.fullmatch(part):
            groups[-1] += f",{part}"
        else:
            groups.append(part)
    return groups
