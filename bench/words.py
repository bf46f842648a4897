"""Measures retrieval by words: the time of a search, and how often it finds the gold passage.

The passages of a file become the postings of one shard. They are read from files, as on a node.
With --tantivy, the same passages are also searched by tantivy with English stems (extra `models`).
With --stems, they are also searched by Winnow with tokens that have the same stem as one token, and
without the punctuation of the question. This is a study: nodes do not do it.

    python -m bench words --passages var/real.jsonl --questions dev-nq.jsonl.zst
"""

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from bench.quantiles import nearest_rank
from winnow.bundle import load_bundle
from winnow.cli.output import console as open_console
from winnow.cli.output import print_json, table
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.postings import Postings
from winnow.files.opened import OpenFile
from winnow.files.stored_array import StoredArray
from winnow.labelled_questions import LabelledQuestion, read_questions
from winnow.passages.rows import BadRow, read_rows
from winnow.text.tokenizer import Tokenizer

_RANKS = (1, 10, 100)
Search = Callable[[str], Sequence[int]]
"""Returns the rows of the best passages for a question, best first."""


@dataclass(frozen=True, slots=True)
class _Passage:
    title: str
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passages", type=Path, required=True, help="file of passages, as `bench corpus` writes it"
    )
    parser.add_argument(
        "--questions", type=Path, action="append", required=True, help="file of questions; repeat"
    )
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question of a file")
    parser.add_argument(
        "--bundle", type=Path, default=Path("bundles/default"), help="bundle with the tokenizer"
    )
    parser.add_argument("--tantivy", action="store_true", help="measure tantivy, too")
    parser.add_argument("--stems", action="store_true", help="measure Winnow with stems, too")


def run(options: argparse.Namespace) -> int:
    """Prints the quantiles of the time of a search, and the recall of each file of questions."""
    passages = [
        _Passage(row.passage.title, row.passage.text)
        for row in read_rows(options.passages)
        if not isinstance(row, BadRow)
    ]
    questions = {path.name: read_questions(path)[:: options.every] for path in options.questions}
    results = []
    with tempfile.TemporaryDirectory() as directory:
        tokens_file = load_bundle(options.bundle).tokenizer
        tokenizer = Tokenizer(tokens_file)
        own = _tokenise(passages, tokenizer)
        searches = {"Winnow": _open_postings(own, tokenizer, Path(directory))}
        if options.stems:
            stems = _stems(tokens_file)
            stemmed = [stems[each] for each in own]
            searches["Winnow, stems"] = _open_postings(stemmed, tokenizer, Path(directory), stems)
        if options.tantivy:
            searches["tantivy, stemmed"] = _open_tantivy(passages)
        for name, search in searches.items():
            results.append({"search": name, **_measure(search, passages, questions)})
    if options.json:
        print_json(results)
    else:
        columns = tuple(results[0])
        open_console().print(
            table(columns, [[str(each[key]) for key in columns] for each in results])
        )
    return 0


def _tokenise(passages: Iterable[_Passage], tokenizer: Tokenizer) -> list[NDArray[np.uint32]]:
    titles, texts = zip(*((each.title, each.text) for each in passages), strict=True)
    return [
        np.array(title.ids + text.ids, np.uint32)
        for title, text in zip(
            tokenizer.tokenise_many(titles), tokenizer.tokenise_many(texts), strict=True
        )
    ]


def _open_postings(
    own: Sequence[NDArray[np.uint32]],
    tokenizer: Tokenizer,
    directory: Path,
    stems: NDArray[np.uint32] | None = None,
) -> Search:
    """Stores the tokens of passages as postings. `stems` maps the tokens of questions."""
    counts = count_words(own)
    lengths = np.array([len(each) for each in own], np.int64)
    inverted = invert(np.concatenate(own), np.cumsum(lengths))
    stored = []
    for part, values in (("rows", inverted.rows), ("counts", inverted.counts)):
        path = directory / f"{part}-{stems is not None}.npy"
        np.save(path, values)
        stored.append(StoredArray(OpenFile(path)))
    postings = Postings(starts=inverted.starts, rows=stored[0], counts=stored[1], lengths=lengths)
    built = BuiltRarities(counts.passages, counts.total, counts.tokens / counts.total)

    def search(question: str) -> Sequence[int]:
        tokens = tokenizer.tokenise(question)
        ids: Sequence[int] = tokens.ids
        if stems is not None:
            ids = [
                int(stems[token])
                for token, (start, end) in zip(tokens.ids, tokens.offsets, strict=True)
                if any(map(str.isalnum, question[start:end]))
            ]
        return [row for row, _ in postings.best(built.terms_of_tokens(ids), _RANKS[-1])[0]]

    return search


def _stems(tokens_file: Path) -> NDArray[np.uint32]:
    """Returns the first token with the stem of each token, [vocabulary].

    Tokens that continue a word, and those of other letters than English ones, have no other token.
    """
    import tantivy  # noqa: PLC0415 (of an extra)

    whole = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
    analyzer = whole.filter(tantivy.Filter.stemmer("english")).build()
    ids = tokenizers.Tokenizer.from_file(str(tokens_file)).get_vocab()
    stems = np.arange(max(ids.values()) + 1, dtype=np.uint32)
    first: dict[str, int] = {}
    for token, number in sorted(ids.items(), key=itemgetter(1)):
        if token.isascii() and token.isalpha():
            (stem,) = analyzer.analyze(token)
            stems[number] = first.setdefault(stem, number)
    return stems


def _open_tantivy(passages: Iterable[_Passage]) -> Search:
    import tantivy  # noqa: PLC0415 (of an extra)

    schema = tantivy.SchemaBuilder()
    schema.add_unsigned_field("row", stored=True)
    schema.add_text_field("body", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(num_threads=1)
    for row, each in enumerate(passages):
        writer.add_document(tantivy.Document(row=row, body=f"{each.title} {each.text}"))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> Sequence[int]:
        query = index.parse_query(" ".join(re.findall(r"\w+", question)).lower(), ["body"])
        hits = searcher.search(query, _RANKS[-1]).hits
        return [searcher.doc(address)["row"][0] for _, address in hits]

    return search


def _measure(
    search: Search,
    passages: Sequence[_Passage],
    questions: dict[str, list[LabelledQuestion]],
) -> dict[str, Any]:
    row_of_text = {each.text: row for row, each in enumerate(passages)}
    times: list[float] = []
    recall: dict[str, str] = {}
    for name, labelled in questions.items():
        for each in labelled:
            search(each.question)  # the first time, files and tables are read
        ranks = []
        for each in labelled:
            began = time.thread_time()
            rows = search(each.question)
            times.append((time.thread_time() - began) * 1e3)
            if each.context in row_of_text:
                gold = row_of_text[each.context]
                ranks.append(rows.index(gold) if gold in rows else len(passages))
        recall[name] = ", ".join(
            f"{100 * statistics.mean(rank < limit for rank in ranks):.1f}" for limit in _RANKS
        )
    return {
        "processor time p50, ms": round(nearest_rank(times, 0.5), 2),
        "processor time p99, ms": round(nearest_rank(times, 0.99), 2),
        **{f"recall@1, @10, @100: {name}": each for name, each in recall.items()},
    }
