"""Prints the installed size of an integration: python sizes.py langchain-winnow langchain-core.

Fails if the client with its dependencies is larger than it may be.
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution

_CLIENT = "winnow-qa-client"
_MAX_CLIENT_MB = 40
_NAME = re.compile(r"[\w.-]+")


def main(integration: str, framework: str) -> int:
    """Prints a line for each part; returns 1 if the client is too large."""
    client, whole = closure(_CLIENT), closure(integration)
    rows = {
        f"{_CLIENT} with its dependencies": client,
        f"{framework} with its dependencies": closure(framework),
        f"what {integration} adds to {framework}": whole - closure(framework),
        f"{integration} with all of these": whole,
    }
    for row, names in rows.items():
        print(f"{megabytes(names):6.0f} MB  {row}")
    return int(megabytes(client) > _MAX_CLIENT_MB)


def closure(name: str) -> set[str]:
    """The installed distributions that a distribution needs, and itself."""
    found, pending = set[str](), [name]
    while pending:
        each = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if each in found:
            continue
        try:
            requires = distribution(each).requires or []
        except PackageNotFoundError:  # needed only on other machines
            continue
        found.add(each)
        pending += [_NAME.match(line)[0] for line in requires if "extra ==" not in line]  # type: ignore[index]
    return found


def megabytes(names: set[str]) -> float:
    """The size of the installed files, compiled modules included."""
    files = [file.locate() for name in names for file in distribution(name).files or ()]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
