"""Exports passages as JSON lines, page by page."""

import asyncio
import io
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from winnow.client import Passage, PassageBatch
from winnow.client.aio import AsyncClientApi
from winnow.client.passages import MAX_PAGE
from winnow.errors import (
    DeadlineExceededError,
    NotServedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.files.result_files import convert_write_errors

STANDARD_OUTPUT = Path("-")
_TRIES = 6
"""Maximum number of times that a page is requested."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
"""Seconds between two requests of one page, unless the server asks for more."""
Sleep = Callable[[float], Awaitable[None]]


async def export(
    api: AsyncClientApi,
    file: IO[str],
    where: str | None,
    timeout: float,
    sleep: Sleep,
    *,
    tenant: str = "",
    on_retry: Callable[[WinnowError], None] = lambda _: None,
) -> int:
    """Writes all matching passages to a file, one JSON object a line; returns their number.

    Each object gets the field `tenant`, unless it is empty.

    A page that fails is requested again, so a busy or restarted node does not end the export.
    `on_retry` is called with the error before that.
    """
    token, count = "", 0
    while True:
        page = await _page(api, token, where, timeout, sleep, on_retry)
        file.writelines(line_of(each, tenant) for each in page.passages)
        count += len(page.passages)
        token = page.next_page_token
        if not token:
            file.flush()
            return count


async def _page(
    api: AsyncClientApi,
    token: str,
    where: str | None,
    timeout: float,
    sleep: Sleep,
    on_retry: Callable[[WinnowError], None],
) -> PassageBatch:
    pause, tries = _FIRST_PAUSE, 1
    while True:
        try:
            return await api.list_page(token, page_size=MAX_PAGE, where=where, timeout=timeout)
        except (DeadlineExceededError, OverloadedError, UnavailableError) as error:
            if tries == _TRIES or isinstance(error, NotServedError):
                raise
            wait = error.retry_after if isinstance(error, OverloadedError) else 0.0
            on_retry(error)
        await sleep(max(pause, wait))  # a tenant with a low quota is told to wait for minutes
        pause, tries = min(2 * pause, _LONGEST_PAUSE), tries + 1


def line_of(passage: Passage, tenant: str = "") -> str:
    """Returns a passage as a line of JSON, as `winnow index build --passages` reads it.

    The line has the field `tenant`, unless it is empty.
    """
    fields = {"id": passage.id, "title": passage.title, "text": passage.text}
    metadata = {"metadata": dict(passage.metadata)} if passage.metadata else {}
    owner = {"tenant": tenant} if tenant else {}
    return json.dumps({**fields, **metadata, **owner}, ensure_ascii=False) + "\n"


@contextmanager
def opened_for_writing(path: Path) -> Iterator[IO[str]]:
    """Opens a new file, or standard output for `-`. Both are written in UTF-8.

    The file appears under its name once the block has ended without an error. Raises WinnowError if
    the file exists or cannot be written.
    """
    if path == STANDARD_OUTPUT:
        if isinstance(sys.stdout, io.TextIOWrapper):  # its encoding may lack characters
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        return
    if path.is_dir():
        raise WinnowError(f"{path} is a directory: name a new file in it")
    if path.exists():
        raise WinnowError(f"{path} exists: remove it, or choose another name")
    part = path.with_name(f"{path.name}.part")
    with convert_write_errors(path):
        try:
            with part.open("w", encoding="utf-8") as file:
                yield file
            part.rename(path)
        finally:
            part.unlink(missing_ok=True)


async def pause(seconds: float) -> None:
    """Waits for some seconds."""
    await asyncio.sleep(seconds)
