"""All unit costs of this machine, one part after the other."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.bundle import default_bundle, load_bundle
from winnow.cli.units import encoding, fronts
from winnow.cli.units.processor import processor
from winnow.errors import UnavailableError
from winnow.settings.common import cores
from winnow.sizing.asked import made_up_questions
from winnow.sizing.units import NodeUnits, Units
from winnow.telemetry.progress import StageProgress


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured."""

    passages: tuple[int, ...] = ()
    """Sizes of made-up shards; the usual ones if there are none."""
    questions: int = 150
    """For each measurement of a front."""
    shards: tuple[int, ...] = fronts.SHARDS
    """Of fronts."""


def measure(extent: Extent, progress: StageProgress) -> Units:
    """Measures everything; nothing else should run on the machine.

    Raises:
        WinnowError: a process that is measured ended.

    """
    bundle, threads = load_bundle(default_bundle()), cores()
    node = _node(extent.passages)
    progress.start("encoding", 1)
    encode = encoding.measure(bundle, threads)
    progress.advance()
    with tempfile.TemporaryDirectory() as place:
        passages, index = Path(place) / "passages.jsonl", Path(place) / "index"
        fronts.write_passages(passages)
        _run(["index", "build", "--passages", str(passages), "--out", str(index)])
        asked = made_up_questions()[: extent.questions]
        loops = fronts.measure(index, bundle, asked, progress, extent.shards)
    return Units(
        processor=processor(),
        cores=threads,
        bundle=f"{bundle.manifest.name} {bundle.manifest.version}",
        encode=encode,
        node=node,
        front=loops.front,
        process=loops.process,
    )


def _node(passages: Sequence[int]) -> NodeUnits:
    """In a process of its own, whose memory tells what shards take."""
    sizes = [flag for size in passages for flag in ("--passages", str(size))]
    return NodeUnits.model_validate_json(_run(["index", "measure", *sizes]))


def _run(arguments: Sequence[str]) -> bytes:
    """What a command of this program prints; raises UnavailableError if it fails."""
    command = [sys.executable, "-m", "winnow", *arguments]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        said = " ".join(arguments[:2])
        raise UnavailableError(f"`winnow {said}` failed with exit code {done.returncode}")
    return done.stdout
