"""Policies that several node types share: pure decisions, without I/O or asyncio.

Callers pass the clock. A policy of one package only is in the folder `policy` of that package.
"""
