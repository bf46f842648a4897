"""Reads zip archives, which Word, PowerPoint and EPUB files are, within limits."""

import io
import zipfile
import zlib
from collections.abc import Sequence
from xml.etree import ElementTree

from winnow.documents.failures import ConversionError, FailureReason

_MAX_MEMBERS = 20_000
_MAX_MEMBER_BYTES = 100_000_000
"""Limit of bytes of an unpacked member."""
_MAX_BYTES = 400_000_000
"""Limit of unpacked bytes of all members that are read."""
_ENCRYPTED = 0x1
"""Flag of an encrypted member."""


class DocumentArchive:
    """The members of a zip archive."""

    def __init__(self, data: bytes) -> None:
        """Raises ConversionError if the archive is damaged or has too many members."""
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError) as error:
            raise _damaged_error(error) from error
        self._members = {each.filename: each for each in self._archive.infolist()}
        self._unread = _MAX_BYTES
        if len(self._members) > _MAX_MEMBERS:
            raise ConversionError(
                FailureReason.TOO_LARGE,
                f"the archive has {len(self._members)} members, at most {_MAX_MEMBERS} are read",
            )

    @property
    def names(self) -> Sequence[str]:
        """Names of the members, in the order of the archive."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """Returns a member; raises ConversionError if it is missing, damaged or too large."""
        member = self._members.get(name)
        if member is None:
            raise ConversionError(FailureReason.DAMAGED, f"the archive has no member {name!r}")
        if member.flag_bits & _ENCRYPTED:
            raise ConversionError(FailureReason.PASSWORD, f"the member {name!r} is encrypted")
        limit = min(_MAX_MEMBER_BYTES, self._unread)
        try:
            with self._archive.open(member) as stream:
                # with a size, no more is unpacked: the declared size may be wrong
                content = stream.read(limit + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            ValueError,
            OverflowError,
            NotImplementedError,  # an unknown compression
            RuntimeError,
        ) as error:
            raise _damaged_error(error) from error
        if len(content) > limit:
            raise _too_large_error(f"the member {name!r} has", limit)
        self._unread -= len(content)
        return content

    def xml(self, name: str) -> ElementTree.Element:
        """Returns the root element of a member; raises ConversionError as `read` does."""
        content = self.read(name)
        # entities could expand to any size; no file of these formats needs its own
        if b"<!ENTITY" in content.replace(b"\x00", b""):
            raise ConversionError(FailureReason.DAMAGED, f"the member {name!r} declares entities")
        try:
            return ElementTree.fromstring(content)  # noqa: S314 - without entities
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise ConversionError(
                FailureReason.DAMAGED, f"the member {name!r} is no XML: {error}"
            ) from error


def _damaged_error(error: Exception) -> ConversionError:
    return ConversionError(FailureReason.DAMAGED, f"the zip archive is damaged: {error}")


def _too_large_error(what: str, limit: int) -> ConversionError:
    return ConversionError(FailureReason.TOO_LARGE, f"{what} more than {limit:,} bytes")
