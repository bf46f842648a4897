"""`python -m simulation`: runs seeds, and explains a seed that fails.

`python -m simulation tails` predicts latencies.

The stand-ins are installed before any code of the cluster is imported, because modules keep
references to the functions that they import.
"""

import importlib
import sys


def main() -> int:
    """Runs the command; returns its exit code."""
    arguments = sys.argv[1:]
    is_tails = arguments[:1] == ["tails"]
    importlib.import_module("simulation.stand_ins").install(with_times=is_tails)
    command = "simulation.tails.command" if is_tails else "simulation.command"
    return int(importlib.import_module(command).run(arguments[is_tails:]))


if __name__ == "__main__":
    sys.exit(main())
