"""`python -m simulation`: runs seeds, and explains a seed that fails.

The stand-ins are installed before any code of the cluster is imported, because modules keep
references to the functions that they import.
"""

import importlib
import sys


def main() -> int:
    importlib.import_module("simulation.stand_ins").install()
    return int(importlib.import_module("simulation.command").run(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
