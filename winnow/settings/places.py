"""Where bundles, snapshots and heads are published, as options name it."""

import typer


def place_url(text: str) -> str:
    """A directory or URL; an empty one would be the directory that a command runs in."""
    if not text.strip():
        raise typer.BadParameter("expected a directory or a URL, not an empty text")
    return text
