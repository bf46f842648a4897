"""The files of a store in a directory of this machine."""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.errors import ArtefactError, UnavailableError
from winnow.files.durable import sync_directory, write_durably
from winnow.heads.manifest import FILE, MODEL

_LOCK = ".lock"


class LocalFiles:
    """A directory. What is written survives a power loss once the method returns."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def name(self) -> str:
        return str(self._root)

    def read(self, *path: str) -> bytes | None:
        place = self._root.joinpath(*path)
        with self._reached():
            try:
                return _content(place)
            except (FileNotFoundError, NotADirectoryError):
                self._look()
                return None
            except IsADirectoryError as error:
                raise ArtefactError(f"cannot read {place}: it is a directory") from error

    def folders(self, *path: str) -> list[str]:
        with self._reached():
            try:
                return [each.name for each in self._root.joinpath(*path).iterdir() if each.is_dir()]
            except (FileNotFoundError, NotADirectoryError):
                self._look()
                return []

    def replace(self, content: bytes, *path: str) -> None:
        with self._reached():
            write_durably(self._root.joinpath(*path), content)

    def put(self, source: Path, check: Callable[[Path], object], *path: str) -> None:
        target = self._root.joinpath(*path)
        with self._reached():
            target.parent.mkdir(exist_ok=True)
            _remove_leftovers(target.parent)
            aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
            try:
                for name in (MODEL, FILE):
                    write_durably(aside / name, (source / name).read_bytes())
                check(aside)
                aside.chmod(0o755)  # other users' servers read it, too
                if target.is_dir():
                    shutil.rmtree(target)  # without a manifest it is no head
                aside.rename(target)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            sync_directory(target.parent)
            sync_directory(self._root)

    def fetch(self, *path: str) -> Path | None:
        with self._reached():
            directory = self._root.joinpath(*path)
            if directory.is_dir():
                return directory
            self._look()
            return None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One writer at a time, on this machine; others wait."""
        with self._reached():
            self._root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with self._reached():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _look(self) -> None:
        """Or a disk that is not mounted, or a file, would be an empty store."""
        os.stat(os.path.join(self._root, ""))  # noqa: PTH116, PTH118 (paths drop the last slash)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            lost = UnavailableError(f"head store {self._root} cannot be used: {reason}")
            raise lost.with_public("the store of heads cannot be used") from error


def _content(path: Path) -> bytes:
    """Of a regular file: a pipe without a writer would keep the thread for ever."""
    with open(path, "rb", opener=_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ArtefactError(f"cannot read {path}: it is not a regular file")
        return file.read()


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _remove_leftovers(directory: Path) -> None:
    """What a writer left that was killed; there is no other one now."""
    for each in directory.glob(".*"):
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
