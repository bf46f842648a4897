"""Reads questions about an index of documents or passages.

A collection is a directory with an index in `index`, and with `questions.jsonl`. Each line has a
`question`, its accepted `answers` (empty if no document answers it), and the `sentence` that
contains the answer, if it is known. `bench/documents/questions.jsonl` has the same form. Further
indexes, in directories whose names begin with `index-`, add passages to the first one.
"""

from pathlib import Path

from models.data import DataError
from models.measuring.judging import JudgedQuestion
from winnow.labelled_questions import read_questions

_INDEX, _QUESTIONS = "index", "questions.jsonl"


def indexes_of(collection: Path) -> list[Path]:
    """Returns the index of a collection, and then its further indexes."""
    further = sorted(each for each in collection.glob(f"{_INDEX}-*") if each.is_dir())
    return [collection / _INDEX, *further]


def read_collection(collection: Path) -> list[JudgedQuestion]:
    """Reads the questions of a collection.

    Raises:
        DataError: the file of questions is missing.
        ArtefactError: there are no questions, or a line is not a question.

    """
    path = collection / _QUESTIONS
    if not path.is_file():
        raise DataError(
            f"{path} is missing: set --documents to a directory with index and {_QUESTIONS}"
        )
    return [
        JudgedQuestion(text=each.question, answers=each.answers, sentence=each.sentence)
        for each in read_questions(path)
    ]
