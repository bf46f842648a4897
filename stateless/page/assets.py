"""The files of the web page, which are read once at start because only releases change them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the web page."""

    content: bytes
    media_type: str

    @property
    def tag(self) -> str:
        """The ETag header of the content."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


def assets() -> dict[str, Asset]:
    """Reads every file of the page; returns the files by name."""
    return {
        file.name: Asset(file.read_bytes(), _MEDIA_TYPES[file.suffix])
        for file in sorted(_FOLDER.iterdir())
        if file.suffix in _MEDIA_TYPES
    }
