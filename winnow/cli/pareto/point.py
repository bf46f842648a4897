"""Operating points: a deployment, and the options of its questions."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from pathlib import Path

from winnow.bundle import read_manifest
from winnow.domain.question import Retriever
from winnow.errors import WinnowError
from winnow.quoting import many

_RETRIEVAL = {
    Retriever.DENSE: ", dense retrieval",
    Retriever.SPARSE: ", sparse retrieval",
    Retriever.HYBRID: "",
}
_ONNX_RUNTIME = ("--runtime", "onnxruntime")
_PADDED = ("--pad-to", "380")
"""Flags that pad inputs to 380 tokens, as in the untuned baseline of Vespa's DPR study."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A kind of cluster: a bundle and the flags of its processes."""

    name: str
    bundle: Path
    front: tuple[str, ...] = ()
    """Flags of the front node."""
    node: tuple[str, ...] = ()
    """Flags of every content node."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """An operating point: a deployment, and the options of its questions."""

    deployment: Deployment
    passages: int
    """Passages to read."""
    _: KW_ONLY
    max_loss: float = 0.0
    retriever: Retriever = Retriever.HYBRID
    brief: bool = False
    """Whether to ask only a few of the questions, because each takes seconds."""

    @property
    def name(self) -> str:
        """The name of the point, unique if the deployments have unique names."""
        retrieval = _RETRIEVAL[self.retriever]
        stop = f", stop {self.max_loss:g}" if self.max_loss else ""
        return f"{self.deployment.name}, {many(self.passages, 'passage')}{retrieval}{stop}"


def grid_points(
    bundles: Sequence[Path],
    runtimes: Sequence[str],
    retrievers: Sequence[Retriever],
    *,
    passages: Sequence[int],
    losses: Sequence[float],
) -> list[OperatingPoint]:
    """All combinations of bundle, runtime, retriever, number of passages and accuracy budget.

    Only hybrid retrieval can stop early: other retrievers ignore the accuracy budgets.
    """
    return [
        OperatingPoint(deployment, number, max_loss=loss, retriever=retriever)
        for deployment in _deployments(bundles, runtimes)
        for retriever, number in product(retrievers, passages)
        for loss in (losses if retriever is Retriever.HYBRID else [0.0])
    ]


def _deployments(bundles: Sequence[Path], runtimes: Sequence[str]) -> Iterable[Deployment]:
    """Yields every bundle with every runtime. Names include the runtime if there are several."""
    for bundle, runtime in product(bundles, runtimes):
        name = _describe(bundle) + (f" {runtime}" if len(runtimes) > 1 else "")
        flags = ("--runtime", runtime)
        yield Deployment(name, bundle, flags, flags)


def untuned_deployment(bundle: Path) -> Deployment:
    """A deployment with one thread per question and node, and padded inputs.

    Raises WinnowError if the bundle has a split reader, which does not support padding.
    """
    if read_manifest(bundle).reader.apart is not None:
        raise WinnowError(
            f"{bundle} cannot be the untuned bundle: its split reader does not support padding; "
            "give a bundle with a full cross-encoder, such as bundles/whole of a checkout"
        )
    node = (*_PADDED, *_ONNX_RUNTIME, "--reader-threads", "1")
    name = f"untuned: {_describe(bundle)}, padded"
    return Deployment(name, bundle, _ONNX_RUNTIME + _PADDED, node)


def lever_points(
    bundles: Sequence[Path], *, threads: int, passages: int, fewer: int, max_loss: float
) -> list[OperatingPoint]:
    """Points from an untuned baseline to all levers. Each adds one change to the point before.

    The order is that of Vespa's study of DPR.

    Args:
        bundles: the untuned models, the same models in int8, then smaller ones. All of them
            encode passages alike.
        threads: reader threads of a question.
        passages: passages to read with dense retrieval.
        fewer: passages to read with hybrid retrieval.
        max_loss: accuracy budget of the last point.

    """
    onnx, several = _ONNX_RUNTIME, (*_ONNX_RUNTIME, "--reader-threads", str(threads))
    first, *others = bundles
    deployments = [
        untuned_deployment(first),
        Deployment("+ threads per question", first, onnx + _PADDED, _PADDED + several),
        Deployment("+ no padding", first, onnx, several),
        *(Deployment(f"+ {_describe(each)}", each, onnx, several) for each in others),
    ]
    hybrid = replace(deployments[-1], name="+ hybrid retrieval")
    stopping = replace(hybrid, name="+ early stopping")
    points = [OperatingPoint(each, passages, retriever=Retriever.DENSE) for each in deployments]
    return [
        *points,
        OperatingPoint(hybrid, fewer),
        OperatingPoint(stopping, fewer, max_loss=max_loss),
    ]


def _describe(bundle: Path) -> str:
    """The name of a bundle, and the precisions of its reader and question encoder."""
    manifest = read_manifest(bundle)
    question_precision = manifest.encoder.effective_question_precision
    return f"{manifest.name} {manifest.reader.precision}/{question_precision}"


def timed_only_points(points: Iterable[OperatingPoint]) -> set[str]:
    """The names of the points whose accuracy is unknown: untrained bundles, or few questions."""
    return {
        each.name
        for each in points
        if each.brief or read_manifest(each.deployment.bundle).untrained
    }


def bundle_megabytes(bundle: Path) -> float:
    """Size of all files of a bundle, in 10⁶ bytes."""
    return sum(entry.bytes for entry in read_manifest(bundle).files.values()) / 1e6
