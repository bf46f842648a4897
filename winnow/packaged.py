"""Files that come with the code: a bundle, the heads of its encoder and the demo corpus.

A wheel has them inside this package, a checkout beside it.
"""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DISTRIBUTION = "winnow-qa"
"""The name that pip knows; `winnow` on the public index is an unrelated package."""

_PACKAGE = Path(__file__).resolve().parent
_BUNDLE = _PACKAGE / "default_bundle"
_HEADS = _PACKAGE / "default_heads"
_CORPUS = _PACKAGE / "demo_corpus"


def checkout() -> Path | None:
    """The checkout that this package lies in; None where it was installed from a wheel."""
    return None if _BUNDLE.is_dir() else _PACKAGE.parent


def default_bundle() -> Path:
    """The directory of the default bundle."""
    root = checkout()
    return root / "bundles" / "default" if root else _BUNDLE


def default_heads() -> Path:
    """The store of the heads of the default bundle's encoder."""
    root = checkout()
    return root / "bundles" / "heads" if root else _HEADS


def demo_corpus() -> Path:
    """The directory of the demo passages and questions."""
    root = checkout()
    return root / "deploy" / "demo" if root else _CORPUS


def made_files() -> Path:
    """Where commands keep files that they can make again: `var/` of a checkout, else a cache.

    The cache is `$XDG_CACHE_HOME/winnow`, or `~/.cache/winnow`. The directory may not exist yet.
    """
    if root := checkout():
        return root / "var"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "winnow"


def installed_version() -> str:
    return version(DISTRIBUTION)


def running_version() -> str:
    """The same, or `unknown` where the code runs without being installed."""
    try:
        return installed_version()
    except PackageNotFoundError:
        return "unknown"


def extra(name: str) -> str:
    """The command that installs an extra, such as `plots`."""
    return f"pip install '{DISTRIBUTION}[{name}]'"
