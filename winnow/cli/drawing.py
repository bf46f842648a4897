"""The library that draws, an extra: is it there, and can it write such a file?"""

import importlib.util
from pathlib import Path
from typing import Any

from winnow.errors import UnavailableError, WinnowError
from winnow.packaged import extra

_KINDS = (".png", ".svg")


def check_drawable(path: Path | None) -> None:
    """Raises a WinnowError if a picture could not be drawn into `path`, if there is one."""
    if path is None:
        return
    if path.suffix.lower() not in _KINDS:
        raise WinnowError(f"cannot draw {path}: name it {' or '.join(_KINDS)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UnavailableError(f"drawing needs matplotlib: {extra('plots')}")


def pyplot() -> Any:
    """matplotlib's, for files and not for a screen. `check_drawable` comes before."""
    import matplotlib as mpl  # noqa: PLC0415 (an extra)

    mpl.use("Agg")
    from matplotlib import pyplot as loaded  # noqa: PLC0415

    return loaded
