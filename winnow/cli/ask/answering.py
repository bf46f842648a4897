"""Sends the questions of `winnow ask` to a running cluster, or to an index in this process."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from winnow import signals
from winnow.cli.ask.session import AskSession
from winnow.client import AsyncClient, Credentials, Options, Reply

Ask = Callable[[str], Reply]
"""A function that asks a question. It raises WinnowError if there is no reply."""


@contextlib.contextmanager
def cluster_asker(
    address: str,
    credentials: Credentials | None,
    timeout: float,
    options: Options,
    *,
    on: str = "",
    tenant: str = "",
) -> Iterator[Ask]:
    """Yields a function that asks the front node at an address. `on` is the name of the index."""

    async def request(text: str) -> Reply:
        async with AsyncClient(address, credentials=credentials, index=on, tenant=tenant) as client:
            return await client.ask(text, timeout=timeout, **options)

    yield lambda text: signals.run(request(text))


@contextlib.contextmanager
def index_asker(
    directory: Path, timeout: float, options: Options, *, tenant: str = ""
) -> Iterator[Ask]:
    """Yields a function that asks an index, which is open in this process during the block."""
    with signals.importing():
        from winnow import Index  # noqa: PLC0415 (not to ask a cluster)

    with Index.open(directory, tenant=tenant) as index:
        yield partial(index.ask, timeout=timeout, **options)


def answer_questions(ask: Ask, question: list[str] | None, *, as_json: bool, timings: bool) -> bool:
    """Answers `question`, or else the questions typed at a prompt or read from standard input.

    Returns whether every question got a reply.
    """
    session = AskSession(ask, as_json, timings)
    if question and question != ["-"]:
        return session.answer(" ".join(question))
    if not question and sys.stdin.isatty():
        return session.prompt()
    return session.answer_each_line(sys.stdin)
