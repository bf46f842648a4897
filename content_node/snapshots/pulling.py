"""Pulls the files of shards. Precomputed data that is damaged at its source is left out."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import structlog

from winnow.reading.states_kind import kind_of_file
from winnow.storage.pull import CopyProgress, PulledFile, PulledFileError, PullSource, pull_files

_log = structlog.get_logger("content_node")


def pull_shards(
    source: PullSource, files: Mapping[str, PulledFile], directory: Path, progress: CopyProgress
) -> None:
    """Does as `pull_files`, but leaves out damaged data, which a shard can do without.

    Raises as `pull_files`; ArtefactError only for files that a shard needs.
    """
    while True:
        try:
            pull_files(source, files, directory, progress)
        except PulledFileError as error:
            kind, path = kind_of_file(error.name), PurePosixPath(error.name)
            if kind is None:
                raise
            _log.warning(f"the {kind.noun} of a shard are left out", reason=str(error))
            # the manifest shows merges that the shard uses the data, so that they compute it
            names = {*kind.files} - ({kind.manifest} - {path.name})
            omitted = {path.with_name(name).as_posix() for name in names}
            files = {name: file for name, file in files.items() if name not in omitted}
        else:
            return
