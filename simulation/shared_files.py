"""Files that all processes share, such as the catalog. A process may be unable to read them."""

from pathlib import Path
from typing import Any

from simulation.disk import DISKS
from simulation.process import current_process
from winnow.errors import UnavailableError
from winnow.versioned_file import VersionedFile

UNREADABLE: set[str] = set()
"""Names of the processes that cannot read them now."""
_read = VersionedFile.read


def _read_if_possible(file: VersionedFile[Any]) -> Any:
    is_shared = DISKS.of(Path(file._storage.name)) is None  # noqa: SLF001
    if is_shared and current_process().name in UNREADABLE:
        raise UnavailableError(f"{Path(file.url).name} cannot be read")
    return _read(file)


def install() -> None:
    """Makes reading fail for the processes in `UNREADABLE`."""
    VersionedFile.read = _read_if_possible  # type: ignore[method-assign,assignment]
