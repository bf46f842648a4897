"""A bundle's directory appears whole, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from models.exporting.errors import CheckpointError


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A directory beside `target` that takes its name at the end, or disappears.

    Raises:
        CheckpointError: `target` is there already, and is not an empty directory, or nothing can be
            written beside it.

    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CheckpointError(f"{target} is there already: name another directory, or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise CheckpointError(f"cannot write to {target.parent}: {error.strerror}") from error
    with aside as directory:
        place = Path(directory) / "bundle"
        place.mkdir()
        yield place
        place.rename(target)
