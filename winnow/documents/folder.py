"""Lists the files of a folder that may be documents."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.errors import ArtefactError

IGNORE_FILE = ".winnowignore"
"""Name of the file in the folder that lists patterns of files to leave out."""


@dataclass(frozen=True, slots=True)
class FilePatterns:
    """Patterns that choose files, in the syntax of .gitignore."""

    include: tuple[str, ...] = ()
    """A file must match one of these; empty for all files."""
    exclude: tuple[str, ...] = ()
    """A file that matches one of these is left out."""


@dataclass(frozen=True, slots=True, order=True)
class FolderFile:
    """A file of a folder."""

    name: str
    """Path relative to the folder, with `/` as separator."""
    path: Path


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file or directory that is not indexed, or only in part, and the reason."""

    name: str
    reason: str
    is_indexed: bool = False
    """Whether the rest of the file is indexed."""


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The files of a folder, sorted by name."""

    files: tuple[FolderFile, ...]
    skipped: tuple[SkippedFile, ...]
    """Files and directories that a user would expect to be indexed."""
    other_files: int
    """Number of files that are no documents."""


def list_files(
    folder: Path, patterns: FilePatterns, is_document: Callable[[Path], bool]
) -> FolderListing:
    """Lists the documents of a folder and its subdirectories.

    Leaves out hidden files and directories (names that begin with a dot), and what the patterns
    and the folder's `.winnowignore` leave out. Follows symbolic links to files in the folder, but
    none to directories. `is_document` decides by the name of a file whether it is a document.

    Raises ArtefactError if the folder or its `.winnowignore` cannot be read, or a pattern is
    invalid.
    """
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise ArtefactError(f"{folder} {problem}: give a folder of documents")
    root = folder.resolve()
    try:
        chosen = _FileChoice(patterns, _ignore_lines(root))
    except ValueError as error:
        raise ArtefactError(f"invalid pattern of files: {error}") from error
    files: list[FolderFile] = []
    skipped: list[SkippedFile] = []
    other_files = 0
    for name, path in _walk(root, chosen, skipped):
        if not is_document(path):
            other_files += 1
        elif reason := _problem(root, path):
            skipped.append(SkippedFile(name, reason))
        else:
            files.append(FolderFile(name, path))
    return FolderListing(tuple(sorted(files)), tuple(skipped), other_files)


class _FileChoice:
    """Chooses files and directories by their names relative to the folder."""

    def __init__(self, patterns: FilePatterns, ignored: Sequence[str]) -> None:
        """Raises ValueError if a pattern is invalid."""
        # of the extra `documents`, which most processes lack
        from pathspec import GitIgnoreSpec  # noqa: PLC0415

        self._include = GitIgnoreSpec.from_lines(patterns.include or ("*",))
        self._exclude = GitIgnoreSpec.from_lines((*ignored, *patterns.exclude))

    def has_file(self, name: str) -> bool:
        return self._include.match_file(name) and not self._exclude.match_file(name)

    def has_directory(self, name: str) -> bool:
        return not self._exclude.match_file(f"{name}/")


def _ignore_lines(root: Path) -> list[str]:
    """Returns the lines of the folder's ignore file; none if there is no such file."""
    path = root / IGNORE_FILE
    try:
        return path.read_text("utf-8-sig").splitlines()  # editors of Windows write a mark
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ArtefactError(f"cannot read {path}: {error}") from error


def _walk(
    root: Path, chosen: _FileChoice, skipped: list[SkippedFile]
) -> Iterator[tuple[str, Path]]:
    """Yields the names and paths of all chosen files. Adds unreadable directories to `skipped`."""

    def skip_directory(error: OSError) -> None:
        name = Path(str(error.filename)).relative_to(root).as_posix()
        if name == ".":
            raise ArtefactError(f"cannot read {root}: {error.strerror}") from error
        skipped.append(SkippedFile(name, f"cannot be read: {error.strerror}"))

    for directory, directories, names in os.walk(root, onerror=skip_directory):
        above = Path(directory).relative_to(root)
        directories[:] = [
            each for each in _visible(directories) if chosen.has_directory(f"{above / each}")
        ]
        for each in _visible(names):
            name = (above / each).as_posix()
            if chosen.has_file(name):
                yield name, Path(directory, each)


def _visible(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if not name.startswith("."))


def _problem(root: Path, path: Path) -> str:
    """Returns why a file cannot be a document; empty if it can."""
    try:
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            return "is a link to a file outside the folder"
        is_file = path.is_file()
    except OSError as error:  # such as a directory that may be listed, but not entered
        return f"cannot be read: {error.strerror}"
    except RuntimeError:  # Python's for a loop of links, before version 3.13
        is_file = False
    if not is_file:
        return "is a link to a missing file" if path.is_symlink() else "is not a regular file"
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return "has a name that is not valid UTF-8: rename it"
    return ""
