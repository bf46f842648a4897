"""Reads many passages offline on every core, with the windows and decoding of the server."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from models.data import Passage
from models.progress import track
from winnow.bundle import Manifest
from winnow.domain.passage import Hit
from winnow.domain.passage import Passage as StoredText
from winnow.domain.reading import Reading
from winnow.inference.options import InferenceOptions, Runtime
from winnow.inference.runtime import FLOAT, open_session
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.reading.cross_encoder import CrossEncoder
from winnow.reading.lower_layers import STATES_OUTPUTS, LowerLayers
from winnow.reading.model import OUTPUTS, ReadingModel
from winnow.reading.reader import Reader
from winnow.reading.split_reader import SplitReader
from winnow.reading.stored_passage import StoredPassage
from winnow.settings.common import cores
from winnow.text.encoder import SPECIAL_TOKENS
from winnow.text.question_words import QuestionWords
from winnow.text.tokenizer import Tokenizer


class OfflineReader:
    """Reads questions with passages, with the tokenizer and the settings of a bundle."""

    def __init__(
        self,
        *,
        graph: Path,
        tokenizer: Path,
        manifest: Manifest,
        runtime: Runtime = Runtime.ONNXRUNTIME,
        lower: Path | None = None,
    ) -> None:
        """Opens the graphs of a reader.

        `lower` is the graph of a split reader's lower layers. By default, the manifest names it, in
        the directory of `graph`. OpenVINO runs a float graph in bfloat16 if the processor supports
        it.
        """
        self._tokenizer = Tokenizer(tokenizer)
        self._manifest = manifest
        options = InferenceOptions(runtime=runtime, runs=cores())
        session = open_session(graph, OUTPUTS, FLOAT, options)
        entry, special = manifest.reader, self._tokenizer.special
        model: ReadingModel = CrossEncoder(session, special, entry)
        if entry.apart is not None:
            lower_session = open_session(
                lower or graph.with_name(entry.apart.lower), STATES_OUTPUTS, FLOAT, options
            )
            layers = LowerLayers(lower_session, special, entry, entry.apart, fingerprint="")
            model = SplitReader(layers, session)
        self._reader = Reader(model, manifest.score)
        self._max_question_tokens = manifest.encoder.max_question_tokens - SPECIAL_TOKENS

    def read(self, question: str, passage: Passage, distance: float = 0.0) -> Reading:
        """Reads one passage. `distance` is copied into the reading."""
        question_ids = self._tokenizer.tokenise(question).ids[: self._max_question_tokens]
        title = self._tokenizer.tokenise(passage.title).ids[:MAX_TITLE_TOKENS]
        stored = StoredPassage(
            StoredText("", passage.title, passage.text),
            title,
            self._tokenizer.tokenise(passage.text),
        )
        hit = Hit(row=0, passage_id="", distance=distance, hybrid_distance=distance)
        max_answer_tokens = self._manifest.reader.max_answer_tokens
        return self._reader.read(question_ids, stored, hit, max_answer_tokens)

    def word_shares(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Returns the question's words in each passage, as `QuestionWords.share` does."""
        words = QuestionWords(self._tokenizer.tokenise(question).ids, self._tokenizer.first_word)
        parts = [part for each in passages for part in (each.title, each.text)]
        ids = [tokens.ids for tokens in self._tokenizer.tokenise_many(parts)]
        return [
            words.share(words.bm25((*title, *text)))
            for title, text in zip(ids[::2], ids[1::2], strict=True)
        ]

    def read_all(self, inputs: Sequence[tuple[str, Passage, float]], label: str) -> list[Reading]:
        """Reads every (question, passage, distance) and shows progress. Keeps the order."""
        with ThreadPoolExecutor(cores()) as pool:
            readings: Iterable[Reading] = pool.map(lambda each: self.read(*each), inputs)
            return list(track(readings, label, len(inputs)))
