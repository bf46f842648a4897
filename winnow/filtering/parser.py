"""Parses the text of a filter by recursive descent. Pure.

filter     = conjunction ("or" conjunction)*
conjunction = term ("and" term)*
term       = "not" term | "(" filter ")" | comparison
comparison = "exists" field
           | field ("=" | "!=" | "<" | "<=" | ">" | ">=") value
           | field ["not"] "in" "(" value ("," value)* ")"
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from winnow.filtering.expression import And, AnyOf, Compare, Exists, Filter, Not, Operator, Or
from winnow.filtering.fields import MAX_NAME_CHARACTERS, Value
from winnow.filtering.lexer import Token, TokenKind, filter_error, tokens
from winnow.filtering.writing import KEYWORDS, NUMBER

MAX_CHARACTERS = 1_000
MAX_CANONICAL = 8 * MAX_CHARACTERS
"""Limit of characters of a canonical text. Text such as `in(9e9,9e9)` grows most, fourfold."""
MAX_DEPTH = 32
"""Limit of nested parentheses and `not`."""
MAX_COMPARISONS = 100
MAX_VALUES = 500
"""Limit of values in a filter, including values in lists."""
_OPERATORS = {each.value: each for each in Operator}
_CURLY_QUOTES = ("“", "”", "„", "«", "»")
_NULL_WORDS = frozenset({"null", "none", "nil"})
_ORDER_OPERATORS = frozenset(Operator) - {Operator.EQUAL, Operator.UNEQUAL}


def parse(text: str, max_characters: int = MAX_CHARACTERS) -> Filter:
    """Parses a filter.

    Raises InvalidRequestError for invalid text. The violation names the field `filter`, the
    position, and what was expected there.
    """
    if len(text) > max_characters:
        raise filter_error(f"has {len(text)} characters, at most {max_characters} are allowed")
    return _Parser(list(tokens(text))).filter()


class _Parser:
    """Parses a list of tokens by recursive descent."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens, self._index = tokens, 0
        self._depth = self._comparison_count = self._value_count = 0

    def filter(self) -> Filter:
        """Parses all tokens."""
        parsed = self._disjunction()
        if self._next.kind is not TokenKind.END:
            raise self._unexpected_token("'and', 'or' or the end")
        return parsed

    def _disjunction(self) -> Filter:
        parts = [self._conjunction()]
        while self._accept("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self) -> Filter:
        parts = [self._term()]
        while self._accept("and"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _term(self) -> Filter:
        if self._accept("not"):
            with self._nested():
                return Not(self._term())
        if not self._accept("("):
            return self._comparison()
        with self._nested():
            parsed = self._disjunction()
        self._expect(")", "'and', 'or' or ')'")
        return parsed

    def _comparison(self) -> Filter:
        self._comparison_count += 1
        if self._comparison_count > MAX_COMPARISONS:
            raise filter_error(f"has more than {MAX_COMPARISONS} comparisons")
        if self._accept("exists"):
            return Exists(self._field_name("the name of a field"))
        field = self._field_name("the name of a field, 'not', 'exists' or '('")
        if self._accept("not"):
            self._expect("in", "'in'")
            with self._nested():  # the canonical text is `not … in …`
                return Not(AnyOf(field, self._value_list()))
        if self._accept("in"):
            return AnyOf(field, self._value_list())
        return self._parse_comparison(field)

    def _parse_comparison(self, field: str) -> Compare:
        token = self._next
        if token.kind is not TokenKind.SIGN or token.text not in _OPERATORS:
            raise self._unexpected_token(f"{', '.join(_OPERATORS)}, 'in' or 'not in'")
        self._index += 1
        operator, position = _OPERATORS[token.text], self._next.position
        value = self._parse_value()
        if isinstance(value, bool) and operator in _ORDER_OPERATORS:
            raise filter_error(
                f"true and false have no order: use = or != before character {position}"
            )
        return Compare(field, operator, value)

    def _value_list(self) -> tuple[Value, ...]:
        self._expect("(", "'(' and a list of values")
        values = [self._parse_value()]
        while self._accept(","):
            values.append(self._parse_value())
        self._expect(")", "a comma or ')'")
        return tuple(values)

    def _field_name(self, expected: str) -> str:
        token = self._next
        if not (token.kind is TokenKind.STRING or _is_name(token)):
            raise self._unexpected_token(expected)
        if len(token.text) > MAX_NAME_CHARACTERS:
            raise filter_error(
                f"the name at character {token.position} has {len(token.text)} characters, at most "
                f"{MAX_NAME_CHARACTERS} are allowed"
            )
        self._index += 1
        return token.text

    def _parse_value(self) -> Value:
        token = self._next
        value = _value_of(token)
        if value is None:
            raise self._unexpected_token("a value", _advice(token.text))
        self._value_count += 1
        if self._value_count > MAX_VALUES:
            raise filter_error(
                f"the filter compares with more than {MAX_VALUES} values: use a field with "
                "fewer values"
            )
        self._index += 1
        return value

    @property
    def _next(self) -> Token:
        return self._tokens[self._index]

    def _accept(self, text: str) -> bool:
        """Skips the next token if it is this keyword or sign; returns whether it is."""
        matches = self._next.keyword == text
        self._index += matches
        return matches

    def _expect(self, text: str, expected: str) -> None:
        if not self._accept(text):
            raise self._unexpected_token(expected)

    def _unexpected_token(self, expected: str, advice: str = "") -> Exception:
        token = self._next
        hint = f": {advice}" if advice and token.kind is TokenKind.WORD else ""
        return filter_error(
            f"expected {expected} at character {token.position}, found {token}{hint}"
        )

    @contextmanager
    def _nested(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise filter_error(
                f"is nested deeper than {MAX_DEPTH} levels at character {self._next.position}"
            )
        yield
        self._depth -= 1


def _advice(text: str) -> str:
    """Returns advice on how to write a value."""
    if text.startswith(_CURLY_QUOTES):
        return "write straight quotes, \" or '"
    if text.lower() in _NULL_WORDS:
        return "`not exists NAME` accepts passages without the field"
    return "write strings and dates in quotes"


def _is_name(token: Token) -> bool:
    word = token.kind is TokenKind.WORD and not NUMBER.fullmatch(token.text)
    return word and token.keyword not in KEYWORDS


def _value_of(token: Token) -> Value | None:
    """Returns the value of a token; None if the token is not a value."""
    if token.kind is TokenKind.STRING:
        return token.text
    if token.keyword in {"true", "false"}:
        return token.keyword == "true"
    if token.kind is not TokenKind.WORD or not NUMBER.fullmatch(token.text):
        return None
    number = float(token.text) + 0.0  # no -0
    if math.isinf(number):
        raise filter_error(f"the number at character {token.position} is too large: {token}")
    return number
