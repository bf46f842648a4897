"""Paths of the files that ship with the code: a bundle, the heads of its encoder, the demo corpus.

A wheel has these files inside this package; a checkout has them next to it.
"""

import os
from pathlib import Path

DISTRIBUTION = "winnow-qa"
"""Name of the distribution for pip; `winnow` on PyPI is an unrelated package."""

_PACKAGE = Path(__file__).resolve().parent
_BUNDLE = _PACKAGE / "default_bundle"
_HEADS = _PACKAGE / "default_heads"
_CORPUS = _PACKAGE / "demo_corpus"


def checkout() -> Path | None:
    """Returns the root directory of the checkout; None for an installation from a wheel."""
    return None if _BUNDLE.is_dir() else _PACKAGE.parent


def default_bundle() -> Path:
    """Returns the directory of the default bundle."""
    root = checkout()
    return root / "bundles" / "default" if root else _BUNDLE


def default_heads() -> Path:
    """Returns the directory of the head store of the default bundle's encoder."""
    root = checkout()
    return root / "bundles" / "heads" if root else _HEADS


def demo_corpus() -> Path:
    """Returns the directory of the demo passages and questions."""
    root = checkout()
    return root / "deploy" / "demo" if root else _CORPUS


def generated_directory() -> Path:
    """Returns the directory of generated files, which commands can create again.

    In a checkout this is `var/`; otherwise `$XDG_CACHE_HOME/winnow`, by default `~/.cache/winnow`.
    The directory may not exist yet.
    """
    if root := checkout():
        return root / "var"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "winnow"


def installed_version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 (few commands need it)

    return version(DISTRIBUTION)


def running_version() -> str:
    """Returns the installed version, or `unknown` for code that runs without installation."""
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415 (few commands need it)

    try:
        return installed_version()
    except PackageNotFoundError:
        return "unknown"


def extra(name: str) -> str:
    """Returns the command that installs an extra, such as `plots`."""
    return f"pip install '{DISTRIBUTION}[{name}]'"
