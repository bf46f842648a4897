"""The id that a question carries through every process and every log line."""

import re
import uuid
from collections.abc import Iterable
from typing import Any

import structlog

KEY = "x-request-id"
_ALLOWED = re.compile(r"[A-Za-z0-9._-]{1,64}")


def accept(metadata: Iterable[tuple[str, Any]] | None) -> str:
    """The caller's id if it is usable, else a new one; bound to the context of the log."""
    sent = next((value for key, value in metadata or () if key == KEY), "")
    usable = isinstance(sent, str) and _ALLOWED.fullmatch(sent) is not None
    chosen = str(sent) if usable else uuid.uuid4().hex[:16]
    structlog.contextvars.bind_contextvars(request_id=chosen)
    return chosen


def current() -> str:
    """The id of the present task, or an empty string."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def outgoing() -> tuple[tuple[str, str], ...]:
    """Metadata that passes the id on."""
    chosen = current()
    return ((KEY, chosen),) if chosen else ()
