"""A worker process as its converter sees it: started when needed, killed when it is too slow."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from winnow.documents.conversion.protocol import (
    LENGTH,
    ConversionLimits,
    Converted,
    parse_reply,
    request_line,
)
from winnow.documents.failures import ConversionFailure, FailureReason
from winnow.parent import PARENT_VARIABLE
from winnow.python_command import python_command

_FILES = 500
"""Number of files after which a process is replaced, since libraries may leak memory."""
_CHUNK_BYTES = 1 << 20
_BYTES_PER_CHARACTER = 16
"""Limit of the length of a reply, for each character of text that is allowed."""


class ConversionWorker:
    """Converts files in a process, one at a time. Replaces the process when it has ended."""

    def __init__(self, limits: ConversionLimits, command: Sequence[str] = ()) -> None:
        """`command`: what to run instead of this package, for tests."""
        self._limits = limits
        self._command = command or python_command(__package__ or "", limits.to_json())
        self._process: subprocess.Popen[bytes] | None = None
        self._converted = 0
        self._killed = False
        self._lock = threading.Lock()

    def convert(self, path: Path) -> Converted:
        """Converts a file. Never raises because of the file."""
        process = self._started_process()
        if process is None:
            return ConversionFailure(FailureReason.CRASHED, "the conversion was stopped")
        try:
            content = self._reply(process, path)
            converted = parse_reply(content)
        except TimeoutError:
            self.close()
            detail = f"the conversion took more than {self._limits.seconds:g} seconds"
            return ConversionFailure(FailureReason.TOO_SLOW, detail)
        except (EOFError, OSError, ValueError, KeyError, TypeError) as error:
            return ConversionFailure(FailureReason.CRASHED, self._cause(process, error))
        self._converted += 1
        if self._converted >= _FILES or _is_exhausted(converted):
            self.close()
        return converted

    def kill(self) -> None:
        """Kills the process for good; may be called from any thread, while `convert` runs."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Ends the process. `convert` would start another one."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()

    def _started_process(self) -> subprocess.Popen[bytes] | None:
        """Starts the process unless it runs. Returns it, or None after `kill`."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        with self._lock:
            if self._killed:
                return None
            if self._process is None:
                self._converted = 0
                self._process = subprocess.Popen(
                    self._command,
                    env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    # Ctrl-C then reaches only the converter, which ends its workers
                    process_group=0,
                )
            return self._process

    def _reply(self, process: subprocess.Popen[bytes], path: Path) -> bytes:
        """Returns the reply to a request; raises TimeoutError, EOFError or OSError."""
        assert process.stdin is not None
        deadline = time.monotonic() + self._limits.seconds
        process.stdin.write(request_line(path))
        (length,) = LENGTH.unpack(_read(process, LENGTH.size, deadline))
        if length > _BYTES_PER_CHARACTER * self._limits.characters:
            raise ValueError(f"the reply has {length} bytes")
        return _read(process, length, deadline)

    def _cause(self, process: subprocess.Popen[bytes], error: Exception) -> str:
        """Ends a process, and describes why it gave no reply."""
        # without its streams a process ends, on a busy machine not at once
        seconds = 10.0 if isinstance(error, (EOFError, OSError)) else 1.0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        code = process.returncode
        self.close()
        if self._killed:
            return "the conversion was stopped"
        if code is None:
            return f"the conversion gave an invalid reply: {error}"
        if code >= 0:
            return f"the process ended with exit code {code}"
        return f"the process was ended by {signal.Signals(-code).name}"


def _read(process: subprocess.Popen[bytes], count: int, deadline: float) -> bytes:
    """Reads `count` bytes; raises TimeoutError at the deadline, EOFError if the process ends."""
    assert process.stdout is not None
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    content = bytearray()
    while len(content) < count:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TimeoutError
        chunk = os.read(process.stdout.fileno(), min(count - len(content), _CHUNK_BYTES))
        if not chunk:
            raise EOFError
        content += chunk
    return bytes(content)


def _is_exhausted(converted: Converted) -> bool:
    return (
        isinstance(converted, ConversionFailure)
        and converted.reason is FailureReason.TOO_MUCH_MEMORY
    )
