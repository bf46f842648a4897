"""A small file of control state at a path or fsspec URL, such as an assignment or a catalog.

A lock excludes other writers: at a URL it is an object beside the file. Processes follow the
current file, even if its version is lower than before.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from winnow.errors import (
    ArtefactError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
    WinnowError,
)
from winnow.quoting import shown
from winnow.storage import open_storage

Value = TypeVar("Value")


class WrongFileError(Exception):
    """The file is intact, and of another kind or a newer format."""


class RefusedChangeError(WinnowError):
    """The content of a file does not allow a change. The message names the file."""


def check_known(content: Mapping[str, Any], known: Collection[str], place: str = "") -> None:
    """Raises WrongFileError if a JSON object has other fields than the `known` ones.

    `place` names the object in its file, such as `indexes[docs]`; empty for the file itself.
    """
    if unknown := sorted(content.keys() - set(known)):
        field = f"{place}.{unknown[0]}" if place else unknown[0]
        raise WrongFileError(
            f"was written by a newer version, since it has the field {field}: update Winnow"
        )


class VersionedFile(Generic[Value]):
    """A file with a checksum, which is always replaced as a whole.

    All methods block on files or on the network.
    """

    def __init__(
        self,
        url: str,
        purpose: str,
        *,
        to_fields: Callable[[Value], dict[str, Any]],
        of_fields: Callable[[Mapping[str, Any]], Value],
    ) -> None:
        """Opens no file yet.

        Args:
            url: path or URL of the file, such as s3://bucket/my-index/assignment.json.
            purpose: plural noun for the content, for error messages.
            to_fields: converts a value to the fields of a JSON object.
            of_fields: the inverse; raises InvalidRequestError for wrong values, and WrongFileError
                for a file of another kind or format.

        Raises UnavailableError if fsspec does not support the URL, or lacks the package for it.

        """
        folder, slash, self._name = url.rpartition("/")
        self.url = shown(url)
        self._storage = open_storage(folder or slash or ".", purpose)
        self._to_fields, self._of_fields = to_fields, of_fields

    def read(self) -> Value | None:
        """Reads the value; returns None if there is no file yet.

        Raises ArtefactError if the file is damaged, and UnavailableError if it cannot be reached.
        """
        content = self._storage.read(self._name)
        return None if content is None else self._decode(content)

    def replace(self, value: Value) -> None:
        """Replaces the file, also a damaged one. Raises UnavailableError if that fails."""
        self._storage.write(self._name, _encode(self._to_fields(value)))

    def change(self, change: Callable[[Value | None], Value]) -> Value:
        """Applies `change` to the current value, writes the result, and returns it.

        Waits for other writers. Raises UnavailableError if another writer changed the file at the
        same time nevertheless. Raises the errors of `read` and `change`, those of `change` as by
        `naming_refusals`; then nothing is written.
        """
        with self._storage.lock_file(self._name) as check:
            before = self.read()
            with self.naming_refusals():
                changed = change(before)
            check()
            self._storage.write(self._name, _encode(self._to_fields(changed)))
            if self.read() != changed:
                raise UnavailableError(
                    f"{self.url} was changed by another writer at the same time: run this again"
                )
        return changed

    @contextmanager
    def naming_refusals(self) -> Iterator[None]:
        """Names the file in the error of a change that its content does not allow.

        Converts InvalidRequestError to RefusedChangeError: people know the fields of requests, but
        not those of the file. Also names the file in a NotFoundError.
        """
        try:
            yield
        except InvalidRequestError as error:
            reasons = "; ".join(each.description for each in error.violations)
            raise RefusedChangeError(f"{self.url} stays unchanged: {reasons}") from error
        except NotFoundError as error:
            raise NotFoundError(f"{self.url} stays unchanged: {error}") from error

    def _decode(self, data: bytes) -> Value:
        try:
            content = json.loads(data)
            checksum = content.pop("checksum")
            if checksum != _checksum(content):
                raise ArtefactError("its checksum does not match")
            return self._of_fields(content)
        except WrongFileError as error:
            raise ArtefactError(f"{self.url} {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = repr(error)
            raise ArtefactError(
                f"{self.url} is damaged: {problem}: restore or delete it"
            ) from error
        except (ArtefactError, InvalidRequestError) as error:
            raise ArtefactError(f"{self.url} is damaged: {error}: restore or delete it") from error


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps({**content, "checksum": _checksum(content)}, indent=1).encode() + b"\n"


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
