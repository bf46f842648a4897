"""What a content node accepts from a front node. Pure."""

from winnow.errors import InvalidRequestError, Violation

MAX_PASSAGES = 1_000
MAX_ANSWER_TOKENS = 256
MAX_QUESTION_TOKENS = 512
_VOCABULARY = 1 << 20


def check_passages(count: int, field: str = "passages") -> None:
    """Refuses a number of passages that no request needs."""
    if not 1 <= count <= MAX_PASSAGES:
        raise InvalidRequestError(Violation(field, f"{count} is not between 1 and {MAX_PASSAGES}"))


def check_question(token_ids: tuple[int, ...]) -> None:
    """Refuses questions longer than any encoder, or with impossible tokens."""
    if len(token_ids) > MAX_QUESTION_TOKENS:
        raise InvalidRequestError(
            Violation("question.token_ids", f"{len(token_ids)} tokens, {MAX_QUESTION_TOKENS} fit")
        )
    if any(token >= _VOCABULARY for token in token_ids):
        raise InvalidRequestError(Violation("question.token_ids", "not a token of any vocabulary"))


def check_answer_tokens(tokens: int) -> None:
    """Refuses answers of impossible length."""
    if not 1 <= tokens <= MAX_ANSWER_TOKENS:
        raise InvalidRequestError(
            Violation("max_answer_tokens", f"{tokens} is not between 1 and {MAX_ANSWER_TOKENS}")
        )
