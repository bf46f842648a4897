"""Reads or reranks texts with another library, for requests on the standard input.

    PYTHON bench/reading/peer.py LIBRARY DIRECTORY

Needs only the library, so that each library can have a separate environment. `DIRECTORY` is written
by `bench.reading.networks`. A request is a line of JSON: `question` and `texts`. A reply is a line
of JSON: `seconds` without this exchange, `order` of the texts by relevance, and `answer`, the words
of the best span (empty for libraries that only rerank).
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MAX_TOKENS = 384
"""Tokens of a question and its text; longer texts are cut or read in parts."""


@dataclass(frozen=True)
class Result:
    """What a library returns for a question and its texts."""

    order: Sequence[int]
    answer: str = ""


Library = Callable[[str, Sequence[str]], Result]


def haystack(directory: str) -> Library:
    """The extractive reader of Haystack (transformers-haystack), in PyTorch."""
    from haystack import Document  # noqa: PLC0415 (the library of this process)
    from haystack_integrations.components.readers.transformers import (  # noqa: PLC0415
        TransformersExtractiveReader,
    )

    reader = TransformersExtractiveReader(
        model=f"{directory}/reader", no_answer=False, max_seq_length=MAX_TOKENS, top_k=1000
    )
    reader.warm_up()

    def read(question: str, texts: Sequence[str]) -> Result:
        documents = [Document(id=str(n), content=text) for n, text in enumerate(texts)]
        answers = reader.run(query=question, documents=documents)["answers"]
        order = dict.fromkeys(int(each.document.id) for each in answers if each.document)
        return Result(list(order), answers[0].data or "" if answers else "")

    return read


def cross_encoder(directory: str) -> Library:
    """CrossEncoder of sentence-transformers, in PyTorch."""
    return _cross_encoder(directory, "torch")


def cross_encoder_onnx(directory: str) -> Library:
    """CrossEncoder of sentence-transformers, with ONNX Runtime in float32."""
    return _cross_encoder(directory, "onnx")


def _cross_encoder(directory: str, backend: str) -> Library:
    from sentence_transformers import CrossEncoder  # noqa: PLC0415 (the library of this process)

    network = CrossEncoder(f"{directory}/reranker", backend=backend, max_length=MAX_TOKENS)

    def rank(question: str, texts: Sequence[str]) -> Result:
        ranked = network.rank(question, list(texts), show_progress_bar=False)
        return Result([int(each["corpus_id"]) for each in ranked])

    return rank


def flashrank(directory: str) -> Library:
    """FlashRank, with ONNX Runtime in int8, as its own networks are."""
    from flashrank import Ranker, RerankRequest  # noqa: PLC0415 (the library of this process)

    ranker = Ranker("ms-marco-MiniLM-L-12-v2", cache_dir=directory, max_length=MAX_TOKENS)

    def rank(question: str, texts: Sequence[str]) -> Result:
        passages = [{"id": n, "text": text} for n, text in enumerate(texts)]
        ranked = ranker.rerank(RerankRequest(query=question, passages=passages))
        return Result([int(each["id"]) for each in ranked])

    return rank


LIBRARIES: dict[str, Callable[[str], Library]] = {
    "haystack": haystack,
    "cross-encoder": cross_encoder,
    "cross-encoder-onnx": cross_encoder_onnx,
    "flashrank": flashrank,
}


def main(library: str, directory: str) -> None:
    """Answers requests until the end of the standard input."""
    replies, sys.stdout = sys.stdout, sys.stderr  # libraries print
    call = LIBRARIES[library](directory)
    for line in sys.stdin:
        request = json.loads(line)
        started = time.perf_counter()
        result = call(request["question"], request["texts"])
        seconds = time.perf_counter() - started
        row = {"seconds": seconds, "order": result.order, "answer": result.answer}
        print(json.dumps(row), file=replies, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
