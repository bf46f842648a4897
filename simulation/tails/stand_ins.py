"""Installs the stand-ins of simulations whose work takes time."""

import importlib
from typing import Any


def install() -> None:
    """Installs all stand-ins. To be called once, before the code of the cluster is imported."""
    importlib.import_module("simulation.stand_ins").install()
    fair_threads: Any = importlib.import_module("winnow.inference.fair_threads")
    niceness: Any = importlib.import_module("winnow.inference.niceness")
    threads = importlib.import_module("simulation.tails.threads")
    fair_threads.FairThreads = threads.TimedThreads
    niceness.lower_priority = threads.lower_priority
