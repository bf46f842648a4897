"""Measures all unit costs of this machine."""

import platform
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median

from winnow.bundle import Bundle, load_bundle
from winnow.cli.units import fronts
from winnow.cli.units.serving import SHARDS, ServingPlan, build_indexes, measure_serving
from winnow.errors import UnavailableError
from winnow.inference.encoder import open_passage_encoder, open_question_encoder
from winnow.inference.options import InferenceOptions
from winnow.packaged import default_bundle
from winnow.passages.encoding import PassageEncoder
from winnow.python_command import python_command
from winnow.settings.common import cores
from winnow.sizing.synthetic import synthetic_passages, synthetic_questions
from winnow.sizing.timing import time_runs
from winnow.sizing.units import EncodeUnits, LengthCost, NodeUnits, UnitCosts
from winnow.telemetry.progress import StageProgress
from winnow.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class MeasuringPlan:
    """The sizes of the measurements."""

    passages: tuple[int, ...] = ()
    """Passages of each synthetic shard; empty for the default sizes."""
    questions: int = 150
    """Questions for each measurement of a front node."""
    shards_per_node: int = 1
    """Shards of each content node that front nodes are measured with."""


def measure_unit_costs(plan: MeasuringPlan, progress: StageProgress) -> UnitCosts:
    """Measures all unit costs. The machine should have no other load.

    Raises WinnowError if a measured process ended.
    """
    bundle, threads = load_bundle(default_bundle()), cores()
    node = _measure_node(plan.passages)
    progress.start("encoding", 1)
    encode = _measure_encoding(bundle, threads)
    progress.advance()
    with tempfile.TemporaryDirectory() as directory:
        passages, index = Path(directory) / "few.jsonl", Path(directory) / "index"
        fronts.write_synthetic_passages(passages)
        _run(["index", "build", "--passages", str(passages), "--out", str(index)])
        questions = synthetic_questions()[: plan.questions]
        process, replies = fronts.measure_one_shard(index, bundle, questions, progress)
        nodes = fronts.FakeNodes(replies, plan.shards_per_node)
        front = fronts.measure_fronts(nodes, questions, progress)
        indexes = build_indexes(Path(directory), (1, SHARDS))
        serving = measure_serving(bundle, indexes, ServingPlan(), progress)
    return UnitCosts(
        processor=processor_name(),
        cores=threads,
        bundle=f"{bundle.manifest.name} {bundle.manifest.version}",
        encode=encode,
        node=node,
        front=front,
        process=process,
        serving=serving,
    )


def _measure_node(passages: Sequence[int]) -> NodeUnits:
    """Measures a content node in another process, whose memory holds nothing but the shards."""
    sizes = [flag for size in passages for flag in ("--passages", str(size))]
    return NodeUnits.model_validate_json(_run(["index", "measure", *sizes]))


def _run(arguments: Sequence[str]) -> bytes:
    """The output of a `winnow` command. Raises UnavailableError if it fails."""
    command = python_command("winnow", *arguments)
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        name = " ".join(arguments[:2])
        raise UnavailableError(f"`winnow {name}` failed with exit code {done.returncode}")
    return done.stdout


def processor_name(source: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name and int8 instructions (Linux), or Python's name of it."""
    try:
        lines = source.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    entries = dict(line.partition(":")[::2] for line in reversed(lines))
    fields = {name.strip(): value.strip() for name, value in entries.items()}
    flags = fields.get("flags", "").split()
    int8 = [name for name in ("amx_int8", "avx512_vnni", "avx_vnni") if name in flags]
    return ", ".join([fields.get("model name", platform.machine()), *int8[:1]])


LENGTHS = (4, 8, 16, 32, 62)
"""Lengths of a question in tokens, without special tokens; 62 is the maximum."""
_QUESTIONS, _PASSAGES = 50, 100
_TOKEN = 1_000
"""Id of a token that every vocabulary has."""


def _measure_encoding(bundle: Bundle, threads: int) -> EncodeUnits:
    """Times the encoder: questions one after the other, then passages in all threads."""
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special)
    by_length = []
    for tokens in LENGTHS:
        times = time_runs(partial(encoder.question, (_TOKEN,) * tokens), _QUESTIONS)
        by_length.append(LengthCost(tokens=tokens, ms=round(median(times), 4)))
    return EncodeUnits(
        question=tuple(by_length), passage=_measure_passage_encoding(bundle, tokenizer, threads)
    )


def _measure_passage_encoding(bundle: Bundle, tokenizer: Tokenizer, threads: int) -> LengthCost:
    model = open_passage_encoder(bundle, tokenizer.special, InferenceOptions(runs=threads))
    encoder = PassageEncoder(model, bundle.manifest.encoder)
    rows = synthetic_passages()[:_PASSAGES]
    titles = list(tokenizer.tokenise_many([row.passage.title for row in rows]))
    texts = list(tokenizer.tokenise_many([row.passage.text for row in rows]))
    pairs = [(title.ids, text.ids) for title, text in zip(titles, texts, strict=True)]
    core_ms = _core_milliseconds(encoder, pairs, threads)
    tokens = fmean(len(title) + len(text) for title, text in pairs)
    return LengthCost(tokens=round(tokens), ms=round(core_ms, 4))


def _core_milliseconds(
    encoder: PassageEncoder, pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], threads: int
) -> float:
    """Core milliseconds per pair of title and text, while all threads encode."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda pair: encoder.encode(*pair), pairs[: 2 * threads]))
        started = time.perf_counter()
        list(pool.map(lambda pair: encoder.encode(*pair), pairs))
        return 1e3 * (time.perf_counter() - started) * threads / len(pairs)
