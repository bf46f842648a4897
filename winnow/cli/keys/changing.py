"""Changes of a file of keys; a lock serialises the changes of several processes."""

import contextlib
import datetime
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from winnow.errors import WinnowError
from winnow.files.durable import create_private
from winnow.keys.file import KeyFileError, read_keys, write_keys
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of, new_token
from winnow.policy.rates import Rate
from winnow.quoting import quoted


def add(
    path: Path, name: str, scopes: Iterable[Scope], rate: Rate | None, out: Path | None = None
) -> str:
    """Adds a key to a file, which is made if there is none; returns its token.

    Args:
        path: the file of keys.
        name: whose key it is.
        scopes: what the key allows.
        rate: limit of its calls; None for no limit.
        out: new file for the token.

    Raises:
        WinnowError: there is a key of that name, `out` exists, or a file cannot be written. Then
            both files are as they were.

    """
    token, today = new_token(), datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        key = Key(
            name=name, digest=digest_of(token), scopes=frozenset(scopes), rate=rate, created=today
        )
    except ValueError as error:
        raise WinnowError(str(error)) from error
    with _locked(path):
        keys = read_keys(path) if path.exists() else ()
        if any(each.name == name for each in keys):
            raise WinnowError(
                f"there is a key {name} in {path} already: remove it first, or choose another name"
            )
        with _token_file(token, out):
            write_keys(path, (*keys, key))
    return token


def remove(path: Path, name: str) -> None:
    """Takes a key out of a file; raises WinnowError if it is not there, or as `add` does."""
    with _locked(path):
        keys = read_keys(path)
        kept = [key for key in keys if key.name != name]
        if len(kept) == len(keys):
            raise WinnowError(f"there is no key {quoted(name)} in {path}: see `winnow keys list`")
        write_keys(path, kept)


@contextlib.contextmanager
def _token_file(token: str, out: Path | None) -> Iterator[None]:
    """Writes the token before its key: it cannot be shown again. Removes it if the block fails."""
    if out is None:
        yield
        return
    try:
        create_private(out, f"{token}\n".encode())
    except FileExistsError as error:
        raise WinnowError(
            f"{out} exists, and may hold a token in use: choose another file with --out"
        ) from error
    except OSError as error:
        raise WinnowError(f"cannot write {out}: {error.strerror}") from error
    try:
        yield
    except BaseException:
        out.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Locks the directory: the file itself is replaced by each change."""
    try:
        directory = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise KeyFileError(
            f"cannot open {path.parent}, the directory of {path.name}: {error.strerror}"
        ) from error
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)
