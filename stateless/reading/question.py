"""Divides questions into the tokens that a reader reads."""

from collections.abc import Collection
from dataclasses import dataclass

from winnow.errors import invalid_field
from winnow.stateless.encoding import unread_language_error
from winnow.text.language import LanguageCheck
from winnow.text.question_words import QuestionWords
from winnow.text.surroundings import asks_for_several
from winnow.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenisedQuery:
    """The tokens of a question for a reader."""

    ids: tuple[int, ...]
    words: QuestionWords
    truncated: bool
    """Whether tokens at the end of the question were left out."""
    unread_language: str = ""
    """ISO 639-1 code of the question's language, if it is probably not read; otherwise empty."""
    asks_for_several: bool = False
    """Whether the question asks for several things."""


class QuestionTokeniser:
    """Divides questions into tokens, and finds their language."""

    def __init__(
        self,
        max_tokens: int,
        languages: LanguageCheck | None = None,
        *,
        refused_unless: Collection[str] | None = None,
    ) -> None:
        """Creates a tokeniser of questions.

        Args:
            max_tokens: number of tokens of a question that the reader reads.
            languages: finds the language of a question; None to find none.
            refused_unless: languages to which questions are restricted; None for all.

        """
        self._max_tokens, self._languages = max_tokens, languages
        self._refused_unless = refused_unless

    def tokenise(self, tokenizer: Tokenizer, text: str) -> TokenisedQuery:
        """Tokenises and truncates a question.

        Raises InvalidRequestError if it has no word, or its language is refused.
        """
        tokens = tokenizer.tokenise(text)
        if not tokens.ids:
            raise invalid_field("question", "has no word in it")
        language = self._languages.unread_language(text) if self._languages else ""
        if language and self._refused_unless is not None:
            raise unread_language_error(language, self._refused_unless)
        return TokenisedQuery(
            ids=tokens.ids[: self._max_tokens],
            words=QuestionWords(tokens.ids, tokenizer.first_word),
            truncated=len(tokens) > self._max_tokens,
            unread_language=language,
            asks_for_several=asks_for_several(text),
        )
