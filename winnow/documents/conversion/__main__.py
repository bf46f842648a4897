"""A worker process, which converts and cuts one file after the other: `python -m … LIMITS`."""

import hashlib
import os
import resource
import signal
import stat
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

from winnow.documents.conversion.protocol import (
    LENGTH,
    ConversionLimits,
    Converted,
    reply_bytes,
    requested_path,
)
from winnow.documents.cutting import cut
from winnow.documents.document import Document
from winnow.documents.failures import ConversionError, ConversionFailure, FailureReason
from winnow.documents.formats.registry import convert
from winnow.parent import die_with_parent


def main() -> None:
    """Answers requests from standard input until it ends."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the converter ends its workers
    limits = ConversionLimits.from_json(sys.argv[1])
    if sys.platform != "darwin":  # macOS refuses to limit the address space
        _limit(resource.RLIMIT_AS, limits.memory_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as replies:
        # libraries may print, which must not damage replies
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        for line in sys.stdin.buffer:
            if not _reply(replies, _convert_file(requested_path(line), limits)):
                return


def _reply(replies: IO[bytes], converted: Converted) -> bool:
    """Writes a reply; returns whether the process can go on."""
    content = reply_bytes(converted)
    replies.write(LENGTH.pack(len(content)))
    replies.write(content)
    replies.flush()
    exhausted = FailureReason.TOO_MUCH_MEMORY
    return not (isinstance(converted, ConversionFailure) and converted.reason is exhausted)


def _convert_file(path: Path, limits: ConversionLimits) -> Converted:
    try:
        content = _content(path, limits.file_bytes)
        document = _cut(convert(path.name, content), limits)
    except ConversionError as error:
        return error.failure()
    except MemoryError:
        detail = f"the conversion needs more than {limits.memory_bytes // 1_000_000:,} MB"
        return ConversionFailure(FailureReason.TOO_MUCH_MEMORY, detail)
    except Exception as error:  # noqa: BLE001 - libraries raise any error for damaged files
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return ConversionError(FailureReason.DAMAGED, f"the parser failed: {message}").failure()
    return replace(document, sha256=hashlib.sha256(content).hexdigest())


def _cut(document: Document, limits: ConversionLimits) -> Document:
    """Returns the document with its passages; raises ConversionError if it is too large."""
    if len(document.text) > limits.characters:
        detail = f"the text has {len(document.text):,} characters, at most {limits.characters:,}"
        raise ConversionError(FailureReason.TOO_LARGE, f"{detail} are allowed")
    passages = tuple(islice(cut(document), limits.passages + 1))
    if len(passages) > limits.passages:
        detail = f"the text has more than {limits.passages:,} passages"
        raise ConversionError(FailureReason.TOO_LARGE, detail)
    return replace(document, passages=passages)


def _content(path: Path, limit: int) -> bytes:
    """Returns the bytes of a file; raises ConversionError if it is too large or unreadable."""
    try:
        # other than a regular file, a pipe would block
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConversionError(FailureReason.UNREADABLE, "it is not a regular file")
            # a file that grows meanwhile is cut
            content = file.read(limit) if status.st_size <= limit else b""
    except OSError as error:
        raise ConversionError(FailureReason.UNREADABLE, error.strerror or str(error)) from error
    if status.st_size > limit:
        raise ConversionError.of_size(status.st_size, limit)
    return content


def _limit(kind: int, value: int) -> None:
    """Sets a limit of the process, if the system's own limit is not lower."""
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, hard))


if __name__ == "__main__":
    main()
