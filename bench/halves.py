"""How long a read takes, whole and with half of it done beforehand.

    python bench/halves.py --bundle DIR [--whole DIR] [--tokens 160] [--reads 100]

`--bundle` has a reader whose lower layers take question and passage apart. One thread reads the
same passage with both readers by turns. Prints milliseconds of a whole read, of one with stored
states, and of one that computes them; and how many times less the second takes than the first.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from content_node.reader import Reader, open_reader
from content_node.reader.lower import open_lower
from content_node.shard.store import StoredPassage
from winnow.bundle import default_bundle, load_bundle
from winnow.domain.passage import Hit, Passage
from winnow.text.tokenizer import Tokenizer, Tokens

_FIRST_ID, _LAST_ID = 1_000, 20_000
_QUESTION = range(3_000, 3_012)


def made_up(tokens: int) -> StoredPassage:
    ids = tuple((7 * n * n + _FIRST_ID) % _LAST_ID + _FIRST_ID for n in range(tokens))
    places = tuple((n, n + 1) for n in range(tokens))
    return StoredPassage(Passage("", "", "." * tokens), (2_000, 2_001), Tokens(ids, places))


def reading(reader: Reader, passage: StoredPassage) -> Callable[[], object]:
    hit = Hit(0, "", 0.0, 0.0)
    return lambda: reader.read(tuple(_QUESTION), passage, hit, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True, help="with a reader in halves")
    parser.add_argument("--whole", type=Path, default=default_bundle())
    parser.add_argument("--tokens", type=int, default=160, help="of the passage's text")
    parser.add_argument("--reads", type=int, default=100, help="of each kind")
    options = parser.parse_args()
    halves, whole = load_bundle(options.bundle), load_bundle(options.whole)
    special = Tokenizer(whole.tokenizer).special
    apart, passage = open_reader(halves, special), made_up(options.tokens)
    states = open_lower(halves, special).states(passage)
    ways = {
        "whole": reading(open_reader(whole, special), passage),
        "stored": reading(apart, replace(passage, states=states)),
        "computed": reading(apart, passage),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.reads):
        for name, read in ways.items():
            started = time.perf_counter()
            read()
            spent[name].append((time.perf_counter() - started) * 1e3)
    medians = {name: statistics.median(own) for name, own in spent.items()}
    for name, own in spent.items():
        print(f"{name:>9}: {medians[name]:.2f} ms (least {min(own):.2f})")
    print(f"stored states: {medians['whole'] / medians['stored']:.2f} times less than a whole read")
    print(f"{options.tokens} tokens: {len(states.packed()):,} bytes")


if __name__ == "__main__":
    main()
