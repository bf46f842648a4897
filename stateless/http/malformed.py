"""The reply to what is no HTTP: it has no request that an ASGI application could be given."""

from email.utils import formatdate
from http import HTTPStatus

import structlog

from winnow.rpc import request_id
from winnow.stateless.http.headers import ALWAYS
from winnow.stateless.http.json_text import written
from winnow.stateless.http.problems import MEDIA_TYPE, HttpRefusedError, problem_of

_log = structlog.get_logger("stateless.http")
_WRONG = HttpRefusedError(HTTPStatus.BAD_REQUEST, "request", "is no HTTP/1.1, or too long")


def malformed() -> bytes:
    """A whole reply, with an id that the log has, too."""
    chosen = request_id.accept(None)
    _log.info("request refused", error=str(_WRONG))
    body = written(problem_of(_WRONG, chosen))
    headers = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        **ALWAYS,
        "date": formatdate(usegmt=True),
        request_id.KEY: chosen,
        "connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 400 Bad Request\r\n{lines}\r\n".encode() + body
