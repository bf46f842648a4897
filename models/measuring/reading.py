"""Reading many passages offline with the serving code, with every core.

What is measured here is what is served: the same windows, decoding and offsets.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from models.data import Passage
from models.progress import followed
from winnow.bundle import Manifest
from winnow.content_node.reader.cross_encoder import CrossEncoder
from winnow.content_node.reader.lower_layers import STATES_OUTPUTS, LowerLayers
from winnow.content_node.reader.model import OUTPUTS, ReadingModel
from winnow.content_node.reader.reader import Reader
from winnow.content_node.reader.split_reader import SplitReader
from winnow.content_node.shard.store import StoredPassage
from winnow.domain.passage import Hit
from winnow.domain.passage import Passage as StoredText
from winnow.domain.reading import Reading
from winnow.inference.runtime import FLOAT, InferenceOptions, Runtime, open_session
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer

_SPECIAL = 2


class OfflineReader:
    """A reader's graph with a bundle's tokenizer and rules."""

    def __init__(
        self,
        *,
        graph: Path,
        tokenizer: Path,
        manifest: Manifest,
        runtime: Runtime = Runtime.ONNXRUNTIME,
        lower: Path | None = None,
    ) -> None:
        """OpenVINO runs a float graph in bfloat16, if the processor has it.

        `lower` is the graph of the lower layers, where these are apart; without it, it lies beside
        `graph`, under the name that the manifest has for it.
        """
        self._tokenizer = Tokenizer(tokenizer)
        self._manifest = manifest
        options = InferenceOptions(runtime=runtime, runs=cores())
        session = open_session(graph, OUTPUTS, FLOAT, options)
        entry, special = manifest.reader, self._tokenizer.special
        model: ReadingModel = CrossEncoder(session, special, entry)
        if entry.apart is not None:
            below = open_session(
                lower or graph.with_name(entry.apart.lower), STATES_OUTPUTS, FLOAT, options
            )
            layers = LowerLayers(below, special, entry, entry.apart, fingerprint="")
            model = SplitReader(layers, session)
        self._reader = Reader(model, manifest.score)
        self._most = manifest.encoder.max_question_tokens - _SPECIAL

    def read(self, question: str, passage: Passage, distance: float = 0.0) -> Reading:
        """One passage for one question."""
        asked = self._tokenizer.tokenise(question).ids[: self._most]
        title = self._tokenizer.tokenise(passage.title).ids[:MAX_TITLE_TOKENS]
        stored = StoredPassage(
            StoredText("", passage.title, passage.text),
            title,
            self._tokenizer.tokenise(passage.text),
        )
        most = self._manifest.reader.max_answer_tokens
        return self._reader.read(
            asked,
            stored,
            Hit(row=0, passage_id="", distance=distance, hybrid_distance=distance),
            most,
        )

    def read_all(self, work: Sequence[tuple[str, Passage, float]], what: str) -> list[Reading]:
        """Question, passage and distance, each read; in order, showing how far it is."""
        with ThreadPoolExecutor(cores()) as pool:
            readings: Iterable[Reading] = pool.map(lambda item: self.read(*item), work)
            return list(followed(readings, what, len(work)))
