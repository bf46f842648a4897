"""Runs a whole cluster in one event loop of virtual time, from a seed.

The code of fronts and content nodes is the code that ships. Stand-ins replace the network, the
journal, clocks, threads, disks and models (`simulation.stand_ins`). See `docs/simulation.md`.
"""
