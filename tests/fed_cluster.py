"""A cluster of processes that takes writes, and a passage to write."""

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client import PassageFields
from winnow.packaged import default_bundle

WON: PassageFields = {
    "id": "zorblax",
    "title": "Zorblax Prize",
    "text": "The Zorblax Prize of 2031 was won by Marta Quendelheim.",
    "metadata": {"year": 2031},
}
ASKED = "Who won the Zorblax Prize in 2031?"


@contextlib.contextmanager
def fed_cluster(
    built: Path, directory: Path, *, one_process: bool = False
) -> Iterator[LocalCluster]:
    """Serves a copy of an index in `directory`, with a feeding port."""
    index = directory / "index"
    shutil.copytree(built, index)
    plan = LocalPlan(
        index,
        default_bundle(),
        "127.0.0.1:0",
        one_process=one_process,
        feed_listen="127.0.0.1:0",
    )
    with LocalCluster(plan) as made:
        made.start()
        asyncio.run(made.wait_ready())
        yield made
