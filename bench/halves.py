"""How long a read takes, whole and with half of it done beforehand, and how right it is.

    python bench/halves.py --bundle DIR [--bundle DIR …] [--whole DIR] [--tokens 160] [--reads 100]
        [--plot halves.png]

One thread reads the same passage with every reader by turns. A reader whose lower layers take
question and passage apart reads it twice: with stored states, and computing them. Prints
milliseconds of a read, how many times less that is than one of `--whole`, and exact match at gold
paragraphs where `winnow models measure` has written it into the bundle. `--plot` draws the latter
two.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.bundle.manifest import Manifest
from winnow.cli.drawing import check_drawable, pyplot
from winnow.cli.outputs import writing
from winnow.content_node.reader import Reader, open_reader
from winnow.content_node.reader.lower import open_lower
from winnow.content_node.shard.store import StoredPassage
from winnow.domain.passage import Hit, Passage
from winnow.errors import ArtefactError
from winnow.inference.runtime import INT8
from winnow.text.tokenizer import Tokenizer, Tokens

_FIRST_ID, _LAST_ID = 1_000, 20_000
_QUESTION = range(3_000, 3_012)


@dataclass(frozen=True, slots=True)
class Read:
    """How a reader reads, and how right it is."""

    name: str
    apart: bool
    milliseconds: float
    least: float
    times_less: float
    """Than the whole reader."""
    gold: dict[str, float]
    """Exact match at gold paragraphs, in percent, by set of questions; empty if not recorded."""
    stored_bytes: int = 0
    computed: float | None = None
    """Milliseconds where states are not stored."""

    @property
    def exact_match(self) -> float:
        """Mean of the sets."""
        return statistics.mean(self.gold.values())


def made_up(tokens: int) -> StoredPassage:
    ids = tuple((7 * n * n + _FIRST_ID) % _LAST_ID + _FIRST_ID for n in range(tokens))
    places = tuple((n, n + 1) for n in range(tokens))
    return StoredPassage(Passage("", "", "." * tokens), (2_000, 2_001), Tokens(ids, places))


def reading(reader: Reader, passage: StoredPassage) -> Callable[[], object]:
    hit = Hit(0, "", 0.0, 0.0)
    return lambda: reader.read(tuple(_QUESTION), passage, hit, 10)


def stored(bundle: Bundle, passage: StoredPassage) -> StoredPassage:
    """The passage with what a reader in halves keeps of it; as it is for a whole reader."""
    if bundle.manifest.reader.apart is None:
        return passage
    lower = open_lower(bundle, Tokenizer(bundle.tokenizer).special)
    return replace(passage, states=lower.states(passage))


def gold(manifest: Manifest) -> dict[str, float]:
    """Exact match at gold paragraphs by set, of the int8 graphs; empty if it is not recorded."""
    sets = manifest.accuracy.get("gold", {})
    return {name: found[INT8]["em"] for name, found in sets.items() if INT8 in found}


def timed(ways: Sequence[Callable[[], object]], reads: int) -> list[list[float]]:
    """Milliseconds of every call, one way after the other by turns. The first round is not
    counted; who comes second finds a warmer cache, so every second round goes backwards.
    """
    spent: list[list[float]] = [[] for _ in ways]
    for number in range(reads + 1):
        pairs = list(zip(ways, spent, strict=True))
        for read, own in reversed(pairs) if number % 2 else pairs:
            started = time.perf_counter()
            read()
            own.append((time.perf_counter() - started) * 1e3)
    return [own[1:] for own in spent]


def measured(bundles: Sequence[Bundle], tokens: int, reads: int) -> list[Read]:
    """Every bundle's reader; the first one is the whole reader that the others are compared to."""
    passage = made_up(tokens)
    kept = [stored(bundle, passage) for bundle in bundles]
    readers = [open_reader(each, Tokenizer(each.tokenizer).special) for each in bundles]
    halves = [n for n, own in enumerate(kept) if own.states is not None]
    ways = [reading(reader, own) for reader, own in zip(readers, kept, strict=True)]
    spent = timed([*ways, *(reading(readers[n], passage) for n in halves)], reads)
    medians = [statistics.median(own) for own in spent]
    computed = dict(zip(halves, medians[len(ways) :], strict=True))
    return [
        Read(
            bundle.manifest.name,
            own.states is not None,
            round(medians[n], 2),
            round(min(spent[n]), 2),
            round(medians[0] / medians[n], 2),
            gold(bundle.manifest),
            0 if own.states is None else len(own.states.packed()),
            round(computed[n], 2) if n in computed else None,
        )
        for n, (bundle, own) in enumerate(zip(bundles, kept, strict=True))
    ]


def draw(reads: Sequence[Read], path: Path) -> None:
    """Exact match by the time of a read, of those whose exact match is known."""
    drawing = pyplot()
    figure, axes = drawing.subplots(figsize=(7, 4.5))
    for apart, label in ((False, "whole"), (True, "lower layers apart, states stored")):
        own = [each for each in reads if each.apart == apart and each.gold]
        times = [each.milliseconds for each in own]
        axes.scatter(times, [each.exact_match for each in own], label=label)
        for each in own:
            where = (each.milliseconds, each.exact_match)
            axes.annotate(each.name, where, fontsize=8, xytext=(5, -9), textcoords="offset points")
    axes.set(xlabel="time of a read, ms, one thread", ylabel="exact match at gold paragraphs, %")
    axes.set_xlim(0, 1.25 * max(each.milliseconds for each in reads))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    figure.tight_layout()
    with writing(path):
        figure.savefig(path, dpi=144)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, action="append", required=True)
    parser.add_argument("--whole", type=Path, default=default_bundle().parent / "whole")
    parser.add_argument("--tokens", type=int, default=160, help="of the passage's text")
    parser.add_argument("--reads", type=int, default=100, help="of each kind")
    parser.add_argument("--plot", type=Path, help="picture to draw (.png, .svg)")
    options = parser.parse_args()
    check_drawable(options.plot)
    if min(options.tokens, options.reads) < 1:
        parser.error("--tokens and --reads are at least 1")
    try:
        bundles = [load_bundle(path) for path in (options.whole, *options.bundle)]
    except ArtefactError as error:
        parser.error(str(error))
    found = measured(bundles, options.tokens, options.reads)
    for each in found:
        print(json.dumps(asdict(each)), flush=True)
    if options.plot:
        draw(found, options.plot)


if __name__ == "__main__":
    main()
