"""Custody of a shard's copy: whether it takes the writes, or another copy does.

While a shard moves, two nodes have a copy of it with the same log. While it is split, its halves
count as copies, each with a part of the passages. At any moment at most one copy takes the writes
of a passage. A small file beside the log records the custody, so that this holds after a crash,
too.
"""

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from winnow.content_node.merging.names import LIVE
from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory, write_durably

CUSTODY_FILE = "custody.json"
"""The name of the file in the directory of the log; without it the copy is the owner."""


class Role(str, Enum):
    """What a copy of a shard does during a move or a split."""

    OWNER = "owner"
    """This copy of the shard takes the writes."""
    FOLLOWER = "follower"
    """This copy follows the log of the owner, until it becomes the owner itself."""
    FORMER_OWNER = "former owner"
    """This copy was handed over. It never takes writes again."""


@dataclass(frozen=True, slots=True)
class Custody:
    """The role of a copy of a shard, with the other node of a move or the parent in a split."""

    role: Role = Role.OWNER
    node: str = ""
    """For a follower, the owner's node; for a former owner, the node that got the shard.

    Empty for an owner, and in a split, because both halves are on the same node.
    """
    moves: int = 0
    """Number of times that the shard had been handed over when the owner, or this copy, got it.

    If two copies claim to be the owner, the report of the one with fewer moves is out of date.
    """
    parent: int | None = None
    """Number of the shard that a half follows; None for a copy of the whole shard."""

    @property
    def takes_writes(self) -> bool:
        """Whether the copy takes the writes."""
        return self.role is Role.OWNER

    def refusal(self) -> str:
        """Why the copy takes no writes; empty for the owner."""
        match self.role:
            case Role.OWNER:
                return ""
            case Role.FOLLOWER | Role.FORMER_OWNER if not self.node:
                return "the shard is being split in two: try again"
            case Role.FOLLOWER:
                return f"the shard is moving here from node {self.node}: try again"
            case Role.FORMER_OWNER:
                return f"the shard has moved to node {self.node}: try again there"


OWNED = Custody()
"""The custody of a shard that never moved."""


def read_custody(shard: Path) -> Custody:
    """Reads the custody of a shard. Raises ArtefactError if the file is damaged."""
    path = _custody_path(shard)
    try:
        content = json.loads(path.read_bytes())
        parent = content.get("parent")
        return Custody(
            Role(content["role"]),
            str(content["node"]),
            int(content["moves"]),
            None if parent is None else int(parent),
        )
    except FileNotFoundError:
        return OWNED
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # taking writes by mistake would lose them: the other copy may be the owner
        raise ArtefactError(
            f"{path} is damaged or cannot be read: {error}: if another node serves the shard, "
            "delete this copy of the shard; otherwise delete only this file"
        ) from error


def check_owned(shard: Path) -> None:
    """Raises ArtefactError if this copy of a shard may lack writes: another copy takes them."""
    custody = read_custody(shard)
    if custody.takes_writes:
        return
    advice = f"use the copy of node {custody.node}" if custody.node else "use its halves"
    if custody.parent is not None:
        advice = "wait until the split is finished"
    raise ArtefactError(
        f"{shard} may lack the last writes, since another copy of the shard takes them: {advice}"
    )


def write_custody(shard: Path, custody: Custody) -> None:
    """Records the custody durably. Raises OSError if it cannot be written."""
    path = _custody_path(shard)
    if not path.parent.is_dir():
        path.parent.mkdir()
        sync_directory(shard)
    content = {"role": custody.role.value, "node": custody.node, "moves": custody.moves}
    if custody.parent is not None:
        content["parent"] = custody.parent
    write_durably(path, json.dumps(content).encode())


def _custody_path(shard: Path) -> Path:
    return shard / LIVE / CUSTODY_FILE
