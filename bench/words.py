"""Finding passages by words: our postings beside tantivy, over the passages of an index.

    python bench/words.py INDEX --questions dev-nq.jsonl.zst --questions dev-squad.jsonl.zst

tantivy comes with the extra `models`, or by `pip install tantivy`; without it the ways that begin
with its name are left out. Each way is built and asked in a process of its own:

- **winnow**: the postings of a shard (`content_node.shard.postings`), read from their files; words
  are the encoder's tokens.
- **tantivy**: words in lower case, its `default` tokenizer.
- **tantivy, stemmed**: its `en_stem` tokenizer.
- **tantivy, tokens**: the encoder's tokens, as words of digits.

Prints for each: seconds to build, bytes on disk, memory of the process beyond what it had before
(anonymous, and of files that it maps), milliseconds of a search for 100 passages, and for each file
of questions the share that has the gold passage, and an accepted answer, among the best 1, 10, 100.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import default_bundle, load_bundle
from winnow.cli.questions import AskedQuestion, read_questions
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.shard.manifest import read_index_manifest, read_shard_manifest
from winnow.content_node.shard.postings import load_postings
from winnow.content_node.shard.saving import save_words
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.shard.words import load_words
from winnow.domain.layout import shard_name
from winnow.files.opened import OpenFile
from winnow.text.scores import normalise
from winnow.text.tokenizer import Tokenizer

K = 100
STEPS = (1, 10, 100)
Search = Callable[[str], list[int]]
"""The rows of the best passages for a question, best first."""
WAYS = ("winnow", "tantivy", "tantivy, stemmed", "tantivy, tokens")


@dataclass(frozen=True, slots=True)
class Passages:
    """All of an index, row by row."""

    titles: list[str]
    texts: list[str]
    tokens: NDArray[np.unsignedinteger]
    ends: NDArray[np.int64]

    def own(self, row: int) -> NDArray[np.unsignedinteger]:
        """The tokens of a passage."""
        return self.tokens[self.ends[row - 1] if row else 0 : self.ends[row]]


def read_passages(index: Path) -> Passages:
    titles: list[str] = []
    texts: list[str] = []
    tokens, lengths = [], []
    shards = read_index_manifest(index).shards
    for shard in range(shards):
        directory = index / shard_name(shard, shards)
        manifest = read_shard_manifest(directory)
        store = PassageStore(OpenFile(directory / manifest.store))
        for stored in store.load(store.numbers().tolist()):
            titles.append(stored.passage.title)
            texts.append(stored.passage.text)
        own, ends = store.words(0, manifest.rows)
        tokens.append(own)
        lengths.append(np.diff(ends, prepend=0))
        store.close()
    return Passages(titles, texts, np.concatenate(tokens), np.cumsum(np.concatenate(lengths)))


def tokenizer() -> Tokenizer:
    return Tokenizer(load_bundle(default_bundle()).tokenizer)


def winnow(passages: Passages, directory: Path) -> Search:
    rows = len(passages.texts)
    built = count_words(passages.own(row).astype(np.uint32) for row in range(rows))
    entry = save_words(directory, passages.tokens, passages.ends, built)
    files = {name: OpenFile(directory / name) for name in entry.names}
    words, rarities = load_words(files, entry, rows, rows, grown=False)
    postings = load_postings(files, entry, words.lengths)
    assert postings is not None
    return partial(_by_postings, postings, rarities, tokenizer())


def _by_postings(postings: Any, rarities: Any, own: Tokenizer, question: str) -> list[int]:
    terms = rarities.weighed(own.tokenise(question).ids)
    return [row for row, _ in postings.best(terms, K)][:K]


def tantivy(passages: Passages, directory: Path, tokens: str, as_ids: bool = False) -> Search:
    import tantivy as library  # noqa: PLC0415

    builder = library.SchemaBuilder()
    builder.add_unsigned_field("row", stored=True)
    builder.add_text_field("body", tokenizer_name=tokens)
    index = library.Index(builder.build(), path=str(directory))
    writer = index.writer(heap_size=256 << 20, num_threads=1)
    for row, (title, text) in enumerate(zip(passages.titles, passages.texts, strict=True)):
        body = " ".join(map(str, passages.own(row).tolist())) if as_ids else f"{title} {text}"
        writer.add_document(library.Document(row=row, body=body))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return partial(_by_tantivy, index, tokenizer() if as_ids else None)


def _by_tantivy(index: Any, own: Tokenizer | None, question: str) -> list[int]:
    words = re.findall(r"\w+", question) if own is None else own.tokenise(question).ids
    query = index.parse_query(" ".join(map(str, words)), ["body"])
    searcher = index.searcher()
    return [searcher.doc(place)["row"][0] for _, place in searcher.search(query, K).hits]


BUILD: dict[str, Callable[[Passages, Path], Search]] = {
    "winnow": winnow,
    "tantivy": partial(tantivy, tokens="default"),
    "tantivy, stemmed": partial(tantivy, tokens="en_stem"),
    "tantivy, tokens": partial(tantivy, tokens="whitespace", as_ids=True),
}


@dataclass(frozen=True, slots=True)
class Recall:
    """Shares of questions, in percent, by the number of passages that are looked at."""

    questions: str
    by_passage: list[float]
    by_answer: list[float]


def recall(search: Search, passages: Passages, path: Path, limit: int | None) -> Recall:
    asked = [each for each in read_questions(path, limit) if each.answers]
    # the places of the gold passage and of the first with an answer
    found = [_places(each, search(each.question), passages) for each in asked]
    gold = [place for place, _ in found if place is not None]
    answered = [place for _, place in found]
    return Recall(
        f"{path.name}: {len(asked)}, {len(gold)} with a gold passage",
        _shares(gold),
        _shares(answered),
    )


def _places(
    asked: AskedQuestion, rows: Sequence[int], passages: Passages
) -> tuple[float | None, float]:
    gold = None
    if asked.context is not None:
        texts = [passages.texts[row] for row in rows]
        gold = texts.index(asked.context) if asked.context in texts else float("inf")
    wanted = [f" {normalise(answer)} " for answer in asked.answers]
    for place, row in enumerate(rows):
        text = f" {normalise(passages.texts[row])} "
        if any(answer in text for answer in wanted):
            return gold, place
    return gold, float("inf")


def _shares(places: Sequence[float]) -> list[float]:
    return [round(100 * statistics.mean([p < step for p in places] or [0]), 1) for step in STEPS]


def memory() -> dict[str, float]:
    """Megabytes of this process: its own, and of files that it maps."""
    status = Path("/proc/self/status").read_text()
    found = {name: re.search(rf"{name}:\s+(\d+) kB", status) for name in ("RssAnon", "RssFile")}
    return {name: int(match[1]) / 1e3 for name, match in found.items() if match}


def measured(options: argparse.Namespace, way: str) -> dict[str, Any]:
    passages = read_passages(options.index)
    with tempfile.TemporaryDirectory(dir=options.scratch) as place:
        before, started = memory(), time.perf_counter()
        search = BUILD[way](passages, Path(place))
        built = time.perf_counter() - started
        asked = [each.question for path in options.questions for each in read_questions(path)]
        chosen = asked[:: max(len(asked) // options.timed, 1)]
        spent = [_timed(search, each) for _ in range(2) for each in chosen][len(chosen) :]
        p50, p99 = np.percentile(spent, [50, 99]).round(2).tolist()
        after = memory()
        files = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
        return {
            "way": way,
            "passages": len(passages.texts),
            "build_s": round(built, 1),
            "disk_mb": round(files / 1e6, 1),
            "memory_mb": {name: round(after[name] - before[name], 1) for name in after},
            "p50_ms": p50,
            "p99_ms": p99,
            "recall": [
                asdict(recall(search, passages, path, options.limit)) for path in options.questions
            ],
        }


def _timed(search: Search, question: str) -> float:
    started = time.perf_counter()
    search(question)
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("--questions", type=Path, action="append", required=True)
    parser.add_argument("--limit", type=int, help="questions of each file; all if not given")
    parser.add_argument("--timed", type=int, default=500, help="questions that are timed")
    parser.add_argument("--scratch", type=Path, help="directory for the indexes that are built")
    parser.add_argument("--way", choices=WAYS, action="append")
    options = parser.parse_args()
    ways = options.way or [w for w in WAYS if w == "winnow" or find_spec("tantivy")]
    if len(ways) == 1:
        print(json.dumps(measured(options, ways[0])), flush=True)
        return
    for way in ways:
        subprocess.run(
            [sys.executable, *sys.argv, "--way", way], check=True, env=os.environ | {"LC_ALL": "C"}
        )


if __name__ == "__main__":
    main()
