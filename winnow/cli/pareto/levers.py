"""The levers, one after the other: what each bought, as Vespa told it of DPR.

Each step keeps what the ones before it changed. Pure but for reading manifests.
"""

from collections.abc import Sequence
from pathlib import Path

from winnow.cli.pareto.point import (
    ONNX_RUNTIME,
    PADDED,
    Deployment,
    Point,
    describe,
    untuned,
)
from winnow.domain.question import Retriever


def steps(
    bundles: Sequence[Path], threads: int, passages: int, fewer: int, max_loss: float
) -> list[Point]:
    """The story from the untuned start to our own levers, as points to measure.

    `bundles` come in the order of the story: the untuned models first, then the same in int8, then
    smaller ones. All of them encode passages alike. `passages` are read until words help to find
    them, then `fewer`; at last reading stops when `max_loss` is promised.
    """
    onnx, several = ONNX_RUNTIME, (*ONNX_RUNTIME, "--reader-threads", str(threads))
    first, *others = bundles
    deployments = [
        untuned(first),
        Deployment("+ threads per question", first, onnx + PADDED, PADDED + several),
        Deployment("+ no padding", first, onnx, several),
        *(Deployment(f"+ {describe(each)}", each, onnx, several) for each in others),
    ]
    last = deployments[-1]
    points = [Point(each, passages, retriever=Retriever.DENSE) for each in deployments]
    words = Deployment("+ words help to find them", last.bundle, last.front, last.node)
    stopping = Deployment("+ stops when safe", last.bundle, last.front, last.node)
    return [*points, Point(words, fewer), Point(stopping, fewer, max_loss=max_loss)]
