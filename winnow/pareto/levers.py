"""The levers, one after the other: what each bought, as Vespa told it of DPR.

Each step keeps what the ones before it changed. The untuned start is what a plain service does:
float models, one thread, every input padded. Pure but for reading manifests.
"""

from pathlib import Path

from winnow.pareto.point import Deployment, Point

PADDED = 380
"""Tokens that DPR's reader was padded to in Vespa's untuned start."""


def steps(
    float_bundle: Path, int8_bundle: Path, smaller: list[Path], threads: int, passages: int = 10
) -> list[Point]:
    """The story from the untuned start to our own levers, as points to measure.

    `float_bundle` and `int8_bundle` hold the same models; `smaller` are bundles whose passages are
    encoded alike, the largest first.
    """
    padded = ("--pad-to", str(PADDED))
    onnx = ("--runtime", "onnxruntime")
    one = (*onnx, "--reader-threads", "1")
    several = (*onnx, "--reader-threads", str(threads))
    deployments = [
        Deployment("untuned: float, padded", float_bundle, onnx + padded, padded + one),
        Deployment("+ threads per question", float_bundle, onnx + padded, padded + several),
        Deployment("+ no padding", float_bundle, onnx, several),
        Deployment("+ int8", int8_bundle, onnx, several),
    ]
    deployments += [
        Deployment(f"+ smaller: {bundle.name}", bundle, onnx, several) for bundle in smaller
    ]
    last = deployments[-1]
    points = [Point(each, passages) for each in deployments]
    stopping = Deployment("+ stops when safe", last.bundle, last.front, last.node)
    return [*points, Point(stopping, passages, max_loss=0.3)]
