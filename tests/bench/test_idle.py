"""What a process costs, as `bench.idle` counts it."""

import os

from tenacious import until

from bench.idle import measured, spent


def test_processor_time_of_a_process_grows_with_its_work() -> None:
    before = spent(os.getpid())
    until(lambda: spent(os.getpid()) > before, 60)


def test_every_process_has_its_share_of_a_core() -> None:
    shares = measured({"this": os.getpid(), "parent": os.getppid()}, 0.0)
    assert set(shares) == {"this", "parent"}
    assert min(shares.values()) >= 0
