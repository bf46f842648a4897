"""What is to be planned for. Pure."""

from dataclasses import dataclass

ALL_READ = 10
"""Passages that a front reads for a question by default, unless it stops early."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index, its load, and the machines that it may have."""

    passages: float
    dimension: int
    qps: float
    """Questions a second at the busiest time."""
    p99_ms: float
    passages_to_read: int = ALL_READ
    """Passages that are read for a question, on average."""
    tokens: int = 170
    """Of question, title and text together: a passage of 100 words."""
    node_cores: int = 4
    node_bytes: float = 16 * 2**30
    front_cores: int = 4
    replicas: int = 1
    """Of each shard, at least."""
    fronts: int = 1
    """At least."""
    busy: float = 0.5
    """Share of the time that cores may be busy, 0 to 1: the rest is for peaks and lost machines."""
    states: bool = False
    """Whether half of the reading is done when a passage is indexed."""
    fed: bool = False
    """Whether passages come and go: then a node holds two generations while it merges."""
