"""Measures all unit costs of this machine, one part after the other."""

import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.bundle import default_bundle, load_bundle
from winnow.cli.units import encoding, fronts
from winnow.errors import UnavailableError
from winnow.settings.common import cores
from winnow.sizing.asked import made_up_questions
from winnow.sizing.units import NodeUnits, Units
from winnow.telemetry.progress import StageProgress


@dataclass(frozen=True, slots=True)
class MeasuringPlan:
    """How much is measured."""

    passages: tuple[int, ...] = ()
    """Sizes of made-up shards; empty for the default ones."""
    questions: int = 150
    """Questions for each measurement of a front node."""
    shards: tuple[int, ...] = fronts.SHARDS
    """Numbers of shards of a front node."""


def measure(plan: MeasuringPlan, progress: StageProgress) -> Units:
    """Measures everything; the machine should have no other work.

    Raises WinnowError if a measured process ended.
    """
    bundle, threads = load_bundle(default_bundle()), cores()
    node = _node(plan.passages)
    progress.start("encoding", 1)
    encode = encoding.measure(bundle, threads)
    progress.advance()
    with tempfile.TemporaryDirectory() as place:
        passages, index = Path(place) / "passages.jsonl", Path(place) / "index"
        fronts.write_passages(passages)
        _run(["index", "build", "--passages", str(passages), "--out", str(index)])
        asked = made_up_questions()[: plan.questions]
        front, process = fronts.measure(index, bundle, asked, progress, plan.shards)
    return Units(
        processor=processor(),
        cores=threads,
        bundle=f"{bundle.manifest.name} {bundle.manifest.version}",
        encode=encode,
        node=node,
        front=front,
        process=process,
    )


def _node(passages: Sequence[int]) -> NodeUnits:
    """Measures a content node in a separate process, whose memory shows that of shards."""
    sizes = [flag for size in passages for flag in ("--passages", str(size))]
    return NodeUnits.model_validate_json(_run(["index", "measure", *sizes]))


def _run(arguments: Sequence[str]) -> bytes:
    """The output of a command of Winnow; raises UnavailableError if it fails."""
    command = [sys.executable, "-m", "winnow", *arguments]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        said = " ".join(arguments[:2])
        raise UnavailableError(f"`winnow {said}` failed with exit code {done.returncode}")
    return done.stdout


def processor(source: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name and its instructions for int8, from Linux; else Python's name for it."""
    try:
        lines = source.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    known = dict(line.partition(":")[::2] for line in reversed(lines))
    fields = {name.strip(): value.strip() for name, value in known.items()}
    flags = fields.get("flags", "").split()
    able = [name for name in ("amx_int8", "avx512_vnni", "avx_vnni") if name in flags]
    return ", ".join([fields.get("model name", platform.machine()), *able[:1]])
