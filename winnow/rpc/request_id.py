"""The request id, which each process passes on with its calls and adds to its log lines."""

import re
import uuid
from collections.abc import Iterable
from typing import Any

KEY = "x-request-id"
_ALLOWED = re.compile(r"[A-Za-z0-9._-]{1,64}")


def accept_or_create(metadata: Iterable[tuple[str, Any]] | None) -> str:
    """Returns the caller's request id, or a new one if it is missing or invalid.

    Adds the id to the log context.
    """
    sent = next((value for key, value in metadata or () if key == KEY), "")
    is_valid = isinstance(sent, str) and _ALLOWED.fullmatch(sent) is not None
    request_id = str(sent) if is_valid else uuid.uuid4().hex[:16]
    import structlog  # noqa: PLC0415 (clients import this module, and write no logs)

    structlog.contextvars.bind_contextvars(request_id=request_id)
    return request_id


def current() -> str:
    """The request id of the current task, or an empty string."""
    import structlog  # noqa: PLC0415 (clients import this module, and write no logs)

    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def outgoing_metadata() -> tuple[tuple[str, str], ...]:
    """Builds the metadata that passes the request id on to another node."""
    request_id = current()
    return ((KEY, request_id),) if request_id else ()
