"""Operating points: what is deployed, and how it is asked. Plain values."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from winnow.bundle import read_manifest
from winnow.domain.question import Retriever
from winnow.errors import WinnowError
from winnow.quoting import many

_FOUND = {
    Retriever.DENSE: " by encoding alone",
    Retriever.SPARSE: " by words alone",
    Retriever.HYBRID: "",
}
ONNX_RUNTIME = ("--runtime", "onnxruntime")
PADDED = ("--pad-to", "380")
"""As DPR's reader was padded in Vespa's untuned start, in tokens."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A running cluster: a bundle, and how its models are run."""

    name: str
    bundle: Path
    front: tuple[str, ...] = ()
    """Flags of the front node."""
    node: tuple[str, ...] = ()
    """Flags of every content node."""


@dataclass(frozen=True, slots=True)
class Point:
    """A deployment, asked in one way."""

    deployment: Deployment
    passages: int
    max_loss: float = 0.0
    retriever: Retriever = Retriever.HYBRID
    brief: bool = False
    """Asked few of the questions, since one takes seconds."""

    @property
    def name(self) -> str:
        """Unique in a grid of uniquely named deployments."""
        found = _FOUND[self.retriever]
        stop = f", stop {self.max_loss:g}" if self.max_loss else ""
        return f"{self.deployment.name}, {many(self.passages, 'passage')}{found}{stop}"


def grid(
    bundles: list[Path],
    runtimes: list[str],
    retrievers: list[Retriever],
    passages: list[int],
    losses: list[float],
) -> list[Point]:
    """Every bundle with every runtime, retriever, number of passages and promised loss.

    All but hybrid retrieval read every passage, so they have one point for each number of them.
    """
    return [
        Point(deployment, number, loss, retriever)
        for deployment in deployments(bundles, runtimes)
        for retriever, number in product(retrievers, passages)
        for loss in (losses if retriever is Retriever.HYBRID else [0.0])
    ]


def deployments(bundles: list[Path], runtimes: list[str]) -> list[Deployment]:
    """Every bundle with every runtime, named by both; the runtime only where there are several."""
    found = []
    for bundle, runtime in product(bundles, runtimes):
        name = describe(bundle)
        if len(runtimes) > 1:
            name += f" {runtime}"
        flags = ("--runtime", runtime)
        found.append(Deployment(name, bundle, flags, flags))
    return found


def untuned(bundle: Path) -> Deployment:
    """What a plain service does: one thread for a question on each node, every input padded.

    Raises:
        WinnowError: the bundle's reader cannot be given padding.

    """
    if read_manifest(bundle).reader.apart is not None:
        raise WinnowError(
            f"{bundle} cannot be the untuned bundle: a reader in halves takes no padding; give "
            "one with a whole reader, such as bundles/whole of a checkout"
        )
    one = (*PADDED, *ONNX_RUNTIME, "--reader-threads", "1")
    return Deployment(f"untuned: {describe(bundle)}, padded", bundle, ONNX_RUNTIME + PADDED, one)


def describe(bundle: Path) -> str:
    """Name, and the precisions of reader and question encoder."""
    manifest = read_manifest(bundle)
    return f"{manifest.name} {manifest.reader.precision}/{manifest.encoder.asked_in}"


def unjudged(points: Iterable[Point]) -> set[str]:
    """The names of those that are there to be timed only: random weights, or few questions."""
    return {
        each.name
        for each in points
        if each.brief or read_manifest(each.deployment.bundle).untrained
    }


def megabytes(bundle: Path) -> float:
    """Size of all its files, in units of 10⁶ bytes."""
    return sum(entry.bytes for entry in read_manifest(bundle).files.values()) / 1e6
