"""Forks processes that run packages of Winnow; the process behind `forked_commands`.

    python tests/fork_server.py SOCKET

It imports all services once. Each message of the socket is a JSON object with the fields of
`forked_commands._fork`, and has the new process's standard input, output and error as file
descriptors. The reply is the process id.
"""

import gc
import importlib
import json
import os
import resource
import runpy
import signal
import socket
import sys
from typing import Any

_PRELOADED = (
    "winnow.cli.commands",
    "winnow.cli.local.cli",
    "winnow.cli.shards.cli",
    "winnow.content_node.__main__",
    "winnow.content_node.cli",
    "winnow.content_node.indexing.builder",
    "winnow.content_node.indexing.cli",
    "winnow.content_node.merging.handed_tokens",
    "winnow.content_node.merging.merge",
    "winnow.content_node.merging.process",
    "winnow.content_node.merging.states",
    "winnow.content_node.snapshots.cli",
    "winnow.content_node.splitting.write_half",
    "winnow.encoder_node.__main__",
    "winnow.encoder_node.cli",
    "winnow.head_node.__main__",
    "winnow.head_node.cli",
    "winnow.standalone.__main__",
    "winnow.standalone.cli",
    "winnow.stateless.__main__",
    "winnow.stateless.cli",
)
_MAX_MESSAGE = 1 << 20
_STREAMS = (("stdin", "r", -1), ("stdout", "w", -1), ("stderr", "w", 1))
"""Names, modes and buffering of the standard streams, as the interpreter opens them."""


def main() -> None:
    """Serves until the socket is closed; in each new process, runs its package."""
    before = set(os.environ)
    for name in _PRELOADED:
        importlib.import_module(name)
    importlib.import_module("short_warm_up").shorten(
        importlib.import_module("pytest").MonkeyPatch()
    )
    added = {name: value for name, value in os.environ.items() if name not in before}
    gc.collect()
    gc.freeze()  # processes then neither visit nor copy these objects
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = socket.socket(fileno=int(sys.argv[1]))
    start = _serve(server)
    if start is None:
        return
    signal.signal(signal.SIGINT, interrupt)
    server.close()
    os.environ.clear()
    os.environ.update({**added, **start["environment"]})
    sys.argv[1:] = start["arguments"]
    runpy.run_module(start["package"], run_name="__main__", alter_sys=True)


def _serve(server: socket.socket) -> dict[str, Any] | None:
    """Forks; returns the message in each new process, and None here after the last message."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(server, _MAX_MESSAGE, 3)
        if not data:
            return None
        start: dict[str, Any] = json.loads(data)
        if (pid := _fork_orphan()) == 0:
            _settle(start, descriptors)
            return start
        for each in descriptors:
            os.close(each)
        server.send(str(pid).encode())


def _fork_orphan() -> int:
    """Forks a process whose parent has ended; returns its id, and 0 in it.

    The kernel makes it a child of the process that waits for the reply.
    """
    pid_reader, pid_writer = os.pipe()
    ended_reader, ended_writer = os.pipe()
    if (between := os.fork()) == 0:
        if pid := os.fork():
            os.write(pid_writer, str(pid).encode())
            os._exit(0)
        os.close(ended_writer)
        os.read(ended_reader, 1)
        for each in (pid_reader, pid_writer, ended_reader):
            os.close(each)
        return 0
    os.close(pid_writer)
    os.waitpid(between, 0)
    pid = int(os.read(pid_reader, 32))
    for each in (pid_reader, ended_reader, ended_writer):
        os.close(each)
    return pid


def _settle(start: dict[str, Any], descriptors: list[int]) -> None:
    """Gives a new process its streams, limits, directory, and process group."""
    for target, (name, mode, buffering) in enumerate(_STREAMS):
        os.dup2(descriptors[target], target)
        os.close(descriptors[target])
        before = getattr(sys, name)  # it may take a pipe for a file, or a file for a terminal
        stream = open(  # noqa: SIM115
            target, mode, buffering, before.encoding, before.errors, closefd=False
        )
        setattr(sys, name, stream)
    for limit, *values in start["limits"]:
        resource.setrlimit(limit, values)
    os.chdir(start["directory"])
    if start["new_session"]:
        os.setsid()
    elif start["process_group"] >= 0:
        os.setpgid(0, start["process_group"])


if __name__ == "__main__":
    main()
