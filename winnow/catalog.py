"""Reads and writes the catalog of named indexes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from winnow.assignment import holders_of_json, holders_to_json
from winnow.domain.assignment import Assignment
from winnow.domain.catalog import Alias, Catalog, CatalogIndex
from winnow.domain.index_copy import CopyLogs, IndexCopy
from winnow.versioned_file import VersionedFile, WrongFileError, check_known

_FORMAT = 1
_COPIES_FORMAT = 2
"""Format of a catalog with copies. Versions that know no copies must not change it."""


class CatalogFile(VersionedFile[Catalog]):
    """The file of a catalog. All methods block on files or on the network."""

    def __init__(self, url: str) -> None:
        """`url`: path or URL of the file, such as s3://bucket/indexes.json.

        Raises UnavailableError if fsspec does not support the URL, or lacks the package for it.
        """
        super().__init__(url, "catalogs", to_fields=_to_fields, of_fields=_of_fields)


class IndexAssignmentFile:
    """The assignment of one index in a catalog, with the methods of `AssignmentFile`."""

    def __init__(self, url: str, index: str) -> None:
        """`url` of the catalog, and the name of the index. Raises as `CatalogFile`."""
        self._file, self._index = CatalogFile(url), index

    def read(self) -> Assignment | None:
        """Reads the assignment; None if the settings of the nodes name the shards.

        Raises NotFoundError if there is no such index, and as `CatalogFile.read`.
        """
        return self._assignment(self._file.read() or Catalog())

    def change(self, change: Callable[[Assignment | None], Assignment]) -> Assignment:
        """Applies `change` to the assignment, and writes the catalog with the result.

        Raises as `CatalogFile.change`, and NotFoundError if there is no such index.
        """

        def change_catalog(before: Catalog | None) -> Catalog:
            catalog = before or Catalog()
            changed = change(self._assignment(catalog))
            name = catalog.resolve(self._index).name
            return catalog.with_holders(name, changed.holders, changed.nodes)

        changed = self._assignment(self._file.change(change_catalog))
        assert changed is not None  # it has holders now
        return changed

    def _assignment(self, catalog: Catalog) -> Assignment | None:
        return catalog.assignment(catalog.resolve(self._index).name)


def _to_fields(catalog: Catalog) -> dict[str, Any]:
    copies = {name: _copy_to_json(each) for name, each in catalog.copies.items()}
    return {
        "format": _COPIES_FORMAT if copies else _FORMAT,
        **({"copies": copies} if copies else {}),
        "version": catalog.version,
        "nodes": dict(catalog.nodes),
        "indexes": {name: _index_to_json(each) for name, each in catalog.indexes.items()},
        "aliases": {name: asdict(each) for name, each in catalog.aliases.items()},
        "deleted_ids": sorted(catalog.deleted_ids),
    }


def _of_fields(content: Mapping[str, Any]) -> Catalog:
    if "holders" in content:
        raise WrongFileError("is the assignment of one index, and no catalog of named indexes")
    if content["format"] not in (_FORMAT, _COPIES_FORMAT):
        raise WrongFileError(
            f"has format {content['format']}, but this version reads formats {_FORMAT} and "
            f"{_COPIES_FORMAT}: update Winnow"
        )
    copies = content.get("copies", {})
    check_known(content, {"format", *_names(Catalog)})
    for field, kind, values in (
        ("indexes", CatalogIndex, content["indexes"]),
        ("aliases", Alias, content["aliases"]),
        ("copies", IndexCopy, copies),
    ):
        for name, each in values.items():
            check_known(each, _names(kind), f"{field}[{name}]")
    for name, each in copies.items():
        check_known(each.get("logs", {}), _names(CopyLogs), f"copies[{name}].logs")
    return Catalog(
        version=content["version"],
        nodes=content["nodes"],
        indexes={name: _index_of_json(each) for name, each in content["indexes"].items()},
        aliases={name: Alias(**each) for name, each in content["aliases"].items()},
        deleted_ids=frozenset(content["deleted_ids"]),
        copies={name: _copy_of_json(each) for name, each in copies.items()},
    )


def _names(kind: type) -> set[str]:
    """Returns the names of the fields of a dataclass."""
    return {each.name for each in fields(kind)}


def _index_to_json(index: CatalogIndex) -> dict[str, Any]:
    return {**asdict(index), "holders": holders_to_json(index.holders)}


def _index_of_json(content: Mapping[str, Any]) -> CatalogIndex:
    holders, nodes = holders_of_json(content["holders"]), tuple(content.get("nodes", ()))
    return CatalogIndex(**{**content, "holders": holders, "nodes": nodes})


def _copy_to_json(copy: IndexCopy) -> dict[str, Any]:
    logs = {"source": _shards_to_json(copy.logs.source), "own": _shards_to_json(copy.logs.own)}
    return {**asdict(copy), "positions": _shards_to_json(copy.positions), "logs": logs}


def _copy_of_json(content: Mapping[str, Any]) -> IndexCopy:
    logs = content.get("logs", {})
    shards = {
        "positions": {int(shard): int(each) for shard, each in content["positions"].items()},
        "filled": tuple(map(int, content["filled"])),
        "logs": CopyLogs(**{part: _shards_of_json(each) for part, each in logs.items()}),
    }
    return IndexCopy(**{**content, **shards})


def _shards_to_json(values: Mapping[int, Any]) -> dict[str, Any]:
    return {str(shard): each for shard, each in sorted(values.items())}


def _shards_of_json(content: Mapping[str, str]) -> dict[int, str]:
    return {int(shard): str(each) for shard, each in content.items()}
