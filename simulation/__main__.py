"""`python -m simulation`: runs seeds, and explains a seed that fails.

`python -m simulation tails` predicts latencies.

The stand-ins are installed before any code of the cluster is imported, because modules keep
references to the functions that they import.
"""

import importlib
import sys


def main() -> int:
    """Runs the command; returns its exit code."""
    arguments, package = sys.argv[1:], "simulation"
    if arguments[:1] == ["tails"]:
        arguments, package = arguments[1:], "simulation.tails"
    importlib.import_module(f"{package}.stand_ins").install()
    return int(importlib.import_module(f"{package}.command").run(arguments))


if __name__ == "__main__":
    sys.exit(main())
