"""The command of a child process that runs one of Winnow's packages."""

import sys


def python_command(package: str, *arguments: str) -> tuple[str, ...]:
    """Returns the command that runs a package with `arguments`.

    The process does not import modules from the current directory. It is a user's, and a file
    there, such as `random.py`, would run in place of Python's module.
    """
    return (sys.executable, "-P", "-m", package, *arguments)
