"""A further encoder group as settings have it: NAME=BUNDLE,STORE, or NAME=BUNDLE. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
_GROUP = re.compile(rf"({_NAME})=([^,]+)(?:,(.+))?")
_BEGINNING = re.compile(rf"{_NAME}=.*")


@dataclass(frozen=True, slots=True)
class EncoderGroupSetting:
    """Where an encoder group's encoder and heads are."""

    name: str
    bundle: Path
    store: str
    """A directory or a URL; empty where heads are on servers."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads NAME=BUNDLE,STORE; raises ValueError if it is something else."""
        found = _GROUP.fullmatch(text)
        if found is None:
            raise ValueError(
                f"{text!r} is no encoder group: expected NAME=BUNDLE,STORE, such as "
                "de=bundles/german,heads/german, with a name of a-z, 0-9, dot, dash and underscore"
            )
        return cls(found[1], Path(found[2]), found[3] or "")


def joined(parts: Iterable[str]) -> list[str]:
    """Encoder groups whole again, where a list was taken apart at every comma."""
    groups: list[str] = []
    for part in parts:
        if groups and not _BEGINNING.fullmatch(part):
            groups[-1] += f",{part}"
        else:
            groups.append(part)
    return groups
