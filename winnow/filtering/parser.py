"""Parses the text of a filter by recursive descent. Pure.

filter     = both ("or" both)*
both       = part ("and" part)*
part       = "not" part | "(" filter ")" | comparison
comparison = "exists" field
           | field ("=" | "!=" | "<" | "<=" | ">" | ">=") value
           | field ["not"] "in" "(" value ("," value)* ")"
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from winnow.filtering.expression import And, AnyOf, Compare, Exists, Filter, Not, Operator, Or
from winnow.filtering.fields import LONGEST_NAME, Value
from winnow.filtering.lexer import Token, TokenKind, tokens, wrong
from winnow.filtering.writing import KEYWORDS, NUMBER

MAX_CHARACTERS = 1_000
MAX_CANONICAL = 8 * MAX_CHARACTERS
"""Most characters of a canonical text. The worst growth is that of `in(9e9,9e9)`, by four."""
MAX_DEPTH = 32
"""Most levels of parentheses and `not`."""
MAX_COMPARISONS = 100
MAX_VALUES = 500
"""Most values in a filter, including those in lists."""
_OPERATORS = {each.value: each for each in Operator}
_CURLY = ("“", "”", "„", "«", "»")
_NOTHING = frozenset({"null", "none", "nil"})
_ORDERED = frozenset(Operator) - {Operator.EQUAL, Operator.UNEQUAL}


def parse(text: str, most: int = MAX_CHARACTERS) -> Filter:
    """Parses a filter of at most `most` characters.

    Raises:
        InvalidRequestError: the text is not a filter. The violation is of the field `filter`, and
            says where something else was expected, and what.

    """
    if len(text) > most:
        raise wrong(f"has {len(text)} characters, at most {most} are allowed")
    return _Parser(list(tokens(text))).filter()


class _Parser:
    """Reads tokens from first to last."""

    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens, self._place = found, 0
        self._depth = self._comparisons = self._compared_with = 0

    def filter(self) -> Filter:
        """Parses all tokens."""
        found = self._either()
        if self._next.shape is not TokenKind.END:
            raise self._expected("and, or, or the end")
        return found

    def _either(self) -> Filter:
        parts = [self._both()]
        while self._took("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Filter:
        parts = [self._part()]
        while self._took("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _part(self) -> Filter:
        if self._took("not"):
            with self._deeper():
                return Not(self._part())
        if not self._took("("):
            return self._comparison()
        with self._deeper():
            found = self._either()
        self._expect(")", "and, or, or )")
        return found

    def _comparison(self) -> Filter:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise wrong(f"has more than {MAX_COMPARISONS} comparisons")
        if self._took("exists"):
            return Exists(self._field("the name of a field"))
        field = self._field("the name of a field, not, exists or (")
        if self._took("not"):
            self._expect("in", "in")
            with self._deeper():  # its canonical text is `not … in …`
                return Not(AnyOf(field, self._values()))
        if self._took("in"):
            return AnyOf(field, self._values())
        return self._compared(field)

    def _compared(self, field: str) -> Compare:
        token = self._next
        if token.shape is not TokenKind.SIGN or token.text not in _OPERATORS:
            raise self._expected(f"{', '.join(_OPERATORS)}, in or not in")
        self._place += 1
        chosen, at, value = _OPERATORS[token.text], self._next.at, self._value()
        if isinstance(value, bool) and chosen in _ORDERED:
            raise wrong(f"true and false have no order: use = or != before character {at}")
        return Compare(field, chosen, value)

    def _values(self) -> tuple[Value, ...]:
        self._expect("(", "( and a list of values")
        values = [self._value()]
        while self._took(","):
            values.append(self._value())
        self._expect(")", "a comma or )")
        return tuple(values)

    def _field(self, what: str) -> str:
        token = self._next
        if not (token.shape is TokenKind.STRING or _is_name(token)):
            raise self._expected(what)
        if len(token.text) > LONGEST_NAME:
            raise wrong(
                f"the name at character {token.at} has {len(token.text)} characters, at most "
                f"{LONGEST_NAME} are allowed"
            )
        self._place += 1
        return token.text

    def _value(self) -> Value:
        token = self._next
        value = _value_of(token)
        if value is None:
            raise self._expected("a value", _advice(token.text))
        self._compared_with += 1
        if self._compared_with > MAX_VALUES:
            raise wrong(f"compares with more than {MAX_VALUES} values: use a field with fewer")
        self._place += 1
        return value

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _took(self, text: str) -> bool:
        """Skips a keyword or a sign, if it comes next; returns whether it did."""
        found = self._next.sign == text
        self._place += found
        return found

    def _expect(self, text: str, what: str) -> None:
        if not self._took(text):
            raise self._expected(what)

    def _expected(self, what: str, advice: str = "") -> Exception:
        token = self._next
        hint = f": {advice}" if advice and token.shape is TokenKind.WORD else ""
        return wrong(f"expected {what} at character {token.at}, found {token}{hint}")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise wrong(f"is nested deeper than {MAX_DEPTH} levels at character {self._next.at}")
        yield
        self._depth -= 1


def _advice(text: str) -> str:
    """Returns advice on how to write a value."""
    if text.startswith(_CURLY):
        return "write straight quotes, \" or '"
    if text.lower() in _NOTHING:
        return "`not exists NAME` lets through what has no value"
    return "write strings and dates in quotes"


def _is_name(token: Token) -> bool:
    word = token.shape is TokenKind.WORD and not NUMBER.fullmatch(token.text)
    return word and token.sign not in KEYWORDS


def _value_of(token: Token) -> Value | None:
    """Returns the value of a token, or None."""
    if token.shape is TokenKind.STRING:
        return token.text
    if token.sign in {"true", "false"}:
        return token.sign == "true"
    if token.shape is not TokenKind.WORD or not NUMBER.fullmatch(token.text):
        return None
    number = float(token.text) + 0.0  # no -0
    if math.isinf(number):
        raise wrong(f"the number at character {token.at} is too large: {token}")
    return number
