"""A picture of latency under load. Needs the `plots` extra."""

from collections.abc import Sequence
from pathlib import Path

from winnow.errors import UnavailableError
from winnow.packaged import extra
from winnow.tools.loadtest.loops import Load


def plot(loads: Sequence[Load], path: Path) -> None:
    """Draws p50, p95 and p99 against questions a second into `path` (.png or .svg).

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    try:
        import matplotlib as mpl  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError(f"plots need matplotlib: {extra('plots')}") from error
    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for name, style in (("p50_ms", "-o"), ("p95_ms", "--o"), ("p99_ms", ":o")):
        axes.plot(
            [load.per_second for load in loads],
            [getattr(load, name) for load in loads],
            style,
            label=name.removesuffix("_ms"),
        )
    for load in loads:
        label = f"{load.offered:g} {'clients' if load.kind == 'closed' else '/s offered'}"
        axes.annotate(
            label,
            (load.per_second, load.p50_ms),
            fontsize=7,
            xytext=(4, -9),
            textcoords="offset points",
        )
    axes.set(xlabel="questions answered per second", ylabel="latency, ms", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
