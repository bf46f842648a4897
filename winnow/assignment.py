"""Reads and writes the assignment of an index."""

from collections.abc import Mapping
from typing import Any

from winnow.domain.assignment import Assignment
from winnow.versioned_file import VersionedFile, WrongFileError, check_known

_FORMATS = (1, 2)
"""Supported formats. Format 2 marks split shards; versions that cannot split refuse it."""


class AssignmentFile(VersionedFile[Assignment]):
    """The file of an assignment. All methods block on files or on the network."""

    def __init__(self, url: str) -> None:
        """`url`: path or URL of the file, such as s3://bucket/my-index/assignment.json.

        Raises UnavailableError if fsspec does not support the URL, or lacks the package for it.
        """
        super().__init__(url, "assignments", to_fields=_to_fields, of_fields=_of_fields)


def holders_to_json(holders: Mapping[int, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Converts the nodes of shards to JSON, in the order of the shards."""
    return {str(shard): names for shard, names in sorted(holders.items())}


def holders_of_json(content: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    """The inverse of `holders_to_json`."""
    return {int(shard): tuple(names) for shard, names in content.items()}


def _to_fields(assignment: Assignment) -> dict[str, Any]:
    return {
        "format": 2 if assignment.is_split else 1,
        "index_id": assignment.index_id,
        "shards": assignment.shards,
        "version": assignment.version,
        "nodes": dict(assignment.nodes),
        "holders": holders_to_json(assignment.holders),
    }


def _of_fields(content: Mapping[str, Any]) -> Assignment:
    if "indexes" in content:
        raise WrongFileError("is a catalog of named indexes: name the index by --on")
    if content["format"] not in _FORMATS:
        raise WrongFileError(
            f"has format {content['format']}, but this version reads formats 1 and 2: update Winnow"
        )
    check_known(content, {"format", "index_id", "shards", "version", "nodes", "holders"})
    return Assignment(
        index_id=content["index_id"],
        shards=content["shards"],
        version=content["version"],
        nodes=content["nodes"],
        holders=holders_of_json(content["holders"]),
    )
