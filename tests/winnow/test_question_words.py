"""The words of a question in a text, without the counts of an index."""

from winnow.packaged import default_bundle
from winnow.text.question_words import QuestionWords
from winnow.text.tokenizer import Tokenizer

TOKENIZER = Tokenizer(default_bundle() / "tokenizer.json")


def ids(text: str) -> tuple[int, ...]:
    return TOKENIZER.tokenise(text).ids


def words(question: str) -> QuestionWords:
    return QuestionWords(ids(question), TOKENIZER.first_word)


def test_the_first_word_of_the_vocabulary_is_its_most_frequent_one() -> None:
    assert ids("the") == (TOKENIZER.first_word,)


def test_rare_words_count_more_than_frequent_ones_and_punctuation_does_not() -> None:
    asked = words("Who built the old aqueduct?")
    assert asked.bm25(ids("an aqueduct")) > asked.bm25(ids("an old one")) > asked.bm25(ids("who"))
    assert asked.bm25(ids("the, the? the!")) == asked.bm25(ids("nobody came")) == 0


def test_repeated_words_count_less_each_time_and_less_in_long_texts() -> None:
    asked = words("Where is the aqueduct?")
    once, twice = asked.bm25(ids("aqueduct")), asked.bm25(ids("aqueduct aqueduct"))
    assert once < twice < 2 * once
    assert asked.bm25(ids("aqueduct" + " of stone" * 80)) < once


def test_the_share_of_all_words_depends_little_on_the_number_of_words() -> None:
    short, long = "aqueduct", "aqueduct bridge canal dam embankment fortress gate harbour"
    shares = [words(each).share(words(each).bm25(ids(each))) for each in (short, long)]
    assert all(1 < share < 2.2 for share in shares)
    assert abs(shares[0] - shares[1]) < 0.2


def test_a_question_without_words_has_no_share() -> None:
    assert words("?!").share(words("?!").bm25(ids("Why?!"))) == 0
