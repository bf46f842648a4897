"""Adds keys to a key file, and removes keys. A lock serialises changes by several processes."""

import contextlib
import datetime
from collections.abc import Iterable, Iterator
from pathlib import Path

from winnow.errors import WinnowError
from winnow.files.durable import create_private
from winnow.files.lock import locked_directory
from winnow.keys.file import read_keys, write_keys
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of, new_token
from winnow.policy.rates import Rate
from winnow.quoting import quoted


def add_key(
    path: Path,
    name: str,
    scopes: Iterable[Scope],
    rate: Rate | None,
    out: Path | None = None,
    *,
    tenant: str = "",
) -> str:
    """Adds a key to a file, which is created if it is missing; returns the token.

    Args:
        path: the key file.
        name: name of the key's owner.
        scopes: scopes of the key.
        rate: limit of the key's calls; None for no limit.
        out: new file for the token; None for no file.
        tenant: tenant of the key's calls; empty for none.

    Raises:
        WinnowError: a key has this name already, `out` exists, or a file cannot be written. Both
            files are then unchanged.

    """
    token, today = new_token(), datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        key = Key(
            name=name,
            digest=digest_of(token),
            scopes=frozenset(scopes),
            rate=rate,
            created=today,
            tenant=tenant,
        )
    except ValueError as error:
        raise WinnowError(str(error)) from error
    with locked_directory(path):
        keys = read_keys(path) if path.exists() else ()
        if any(each.name == name for each in keys):
            raise WinnowError(
                f"there is a key {name} in {path} already: remove it first, or choose another name"
            )
        with _token_file(token, out):
            write_keys(path, (*keys, key))
    return token


def remove_key(path: Path, name: str) -> None:
    """Removes a key from a file. Raises WinnowError if no key has this name, or on a file error."""
    with locked_directory(path):
        keys = read_keys(path)
        remaining = [key for key in keys if key.name != name]
        if len(remaining) == len(keys):
            raise WinnowError(f"there is no key {quoted(name)} in {path}: see `winnow keys list`")
        write_keys(path, remaining)


@contextlib.contextmanager
def _token_file(token: str, out: Path | None) -> Iterator[None]:
    """Writes the token before the block stores its key; removes the file if the block fails.

    A stored key without its token would be useless: the token cannot be shown again.
    """
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
