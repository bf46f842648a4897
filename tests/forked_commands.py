"""Forks processes of Winnow that tests start, from one that has imported Winnow.

These are `python -m winnow ...`, and the children of nodes, `python -P -m
winnow.content_node...`.

The imports take more processor time than everything else that most of these processes do. A forked
process is one like any other: a child of the tests, with its streams, environment, limits and
signals. Only its command line in /proc is another one. Processes that a forked one or a shell
starts are not forked, so that tests of a start and of `winnow up` still see the imports.

Works on Linux; on other systems processes start as usual.
"""

import contextlib
import ctypes
import inspect
import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tenacious import LONG

from winnow import faultpoints

_INTERPRETER = [sys.executable, "-m"]
_PACKAGES = {"winnow", "winnow.content_node.merging", "winnow.content_node.splitting"}
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
_SET_CHILD_SUBREAPER = 36
_execute: Callable[..., None] = subprocess.Popen._execute_child  # type: ignore[attr-defined]
_SIGNATURE = inspect.signature(_execute)


@contextlib.contextmanager
def commands_forked() -> Iterator[None]:
    """Forks the commands that this process starts within the context."""
    if sys.platform != "linux":
        yield
        return
    server = _ForkServer()

    def fork_or_execute(process: "subprocess.Popen[Any]", *arguments: Any) -> None:
        given = _SIGNATURE.bind(process, *arguments).arguments
        if _is_command(given):
            _fork(process, given, server)
        else:
            _execute(process, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "_execute_child", fork_or_execute)
        yield
    server.close()


def _is_command(given: dict[str, Any]) -> bool:
    words = given["args"]
    if isinstance(words, str | bytes | os.PathLike) or given["pass_fds"] or given["preexec_fn"]:
        return False
    words = _without_safe_path(words)
    is_ours = len(words) > 2 and words[:2] == _INTERPRETER and words[2] in _PACKAGES
    # fault points are chosen when they are imported
    return is_ours and faultpoints.VARIABLE not in (given["env"] or os.environ)


def _without_safe_path(words: Sequence[Any]) -> list[Any]:
    """The words of a command without Python's option `-P`, which children of Winnow have."""
    return [each for number, each in enumerate(words) if (number, each) != (1, "-P")]


def _fork(process: "subprocess.Popen[Any]", given: dict[str, Any], server: "_ForkServer") -> None:
    """Does for a new `Popen` what its own method does, except that it forks."""
    _, _, package, *arguments = _without_safe_path(given["args"])
    start = {
        "package": package,
        "arguments": [os.fspath(each) for each in arguments],
        "environment": dict(os.environ if given["env"] is None else given["env"]),
        "directory": os.fspath(given["cwd"] or Path.cwd()),
        "limits": [(each, *resource.getrlimit(each)) for each in _LIMITS],
        "new_session": given["start_new_session"],
        "process_group": given["process_group"],
    }
    streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
    process.pid = server.fork(
        start, [own if each < 0 else each for own, each in enumerate(streams)]
    )
    process._child_created = True  # type: ignore[attr-defined]
    ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    process._close_pipe_fds(*(given[each] for each in ends))  # type: ignore[attr-defined]


class _ForkServer:
    """The process `fork_server.py`, started by the first command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket, self._other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def fork(self, start: dict[str, Any], streams: list[int]) -> int:
        """Returns the id of a new process, which is a child of this one."""
        prctl = ctypes.CDLL(None).prctl
        with self._lock:
            self._start()
            prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._socket, [json.dumps(start).encode()], streams)
                return int(self._socket.recv(32))
            finally:
                prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def close(self) -> None:
        """Ends the process; those that it forked go on."""
        self._socket.close()
        self._other_end.close()
        if self._process is not None:
            self._process.wait(LONG)

    def _start(self) -> None:
        if self._process is None:
            program, end = Path(__file__).with_name("fork_server.py"), self._other_end.fileno()
            self._process = subprocess.Popen(
                [sys.executable, str(program), str(end)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[end],
            )
            self._other_end.close()
