"""What is read, what is refused and how, and that nothing crashes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_filters import filters, metadata

from winnow.errors import InvalidRequestError
from winnow.filtering import MAX_CANONICAL, MAX_CHARACTERS, Filter, parse

MANY = settings(max_examples=500, print_blob=True)
PIECES = [
    *("(", ")", ",", "=", "!=", "<", "<=", ">", ">=", "==", "and", "or", "not", "in", "exists"),
    *("AND", "year", "lang", "a.b", "1", "-2.5", "1e999", "2015-03-01", "true", "false", '"en"'),
    *("'x y'", '"', "'", "\\", " ", "\n", "\0", "\U0001f600", "e\u0301", "…", "\u2003"),
]
soup = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join)
CANONICAL = [
    ("year>=2010 AND lang='en'", 'year >= 2010 and lang = "en"'),
    ("a=1 or b=2 and not c=3", "a = 1 or b = 2 and not c = 3"),
    ("((a = 1)) or ((b = 2 or c = 3))", "a = 1 or (b = 2 or c = 3)"),
    ("(a = 1 and b = 2) and c = 3", "(a = 1 and b = 2) and c = 3"),
    ("not(a = 1 or b = 2)", "not (a = 1 or b = 2)"),
    ("not((a = 1))", "not a = 1"),
    ("a not in (1,'x',TRUE)", 'not a in (1, "x", true)'),
    ("exists 'year'", "exists year"),
    ("'in' = 1", '"in" = 1'),
    ("'2010' = +2010.0", '"2010" = 2010'),
    ("'' = -0", '"" = 0'),
    ("a = .5 and b = 1e20 and c = 5.", "a = 0.5 and b = 1e+20 and c = 5"),
    ('a = "say \\"hi\\" \\\\ bye"', 'a = "say \\"hi\\" \\\\ bye"'),
    ("a = 'say \"hi\"'", 'a = "say \\"hi\\""'),
    ("städte.größe > 3", "städte.größe > 3"),
]
REFUSED = [
    ("", "expected the name of a field, 'not', 'exists' or '(' at character 1, found the end"),
    ("  ", "expected the name of a field, 'not', 'exists' or '(' at character 3, found the end"),
    ("year", "expected =, !=, <, <=, >, >=, 'in' or 'not in' at character 5, found the end"),
    ("year == 2010", "expected =, !=, <, <=, >, >=, 'in' or 'not in' at character 6, found '=='"),
    ("year => 1", "expected =, !=, <, <=, >, >=, 'in' or 'not in' at character 6, found '=>'"),
    ("year >=", "expected a value at character 8, found the end"),
    (
        "lang = en",
        "expected a value at character 8, found 'en': write strings and dates in quotes",
    ),
    (
        "published > 2015-03-01",
        "expected a value at character 13, found '2015-03-01': write strings and dates in quotes",
    ),
    (
        "lang = “en”",
        "expected a value at character 8, found '“en”': write straight quotes, \" or '",
    ),
    (
        "lang = null",
        "expected a value at character 8, found 'null': `not exists NAME` accepts passages without the field",
    ),
    ("a = 1 b = 2", "expected 'and', 'or' or the end at character 7, found 'b'"),
    ("(a = 1", "expected 'and', 'or' or ')' at character 7, found the end"),
    ("a = 1)", "expected 'and', 'or' or the end at character 6, found ')'"),
    ("a in 1", "expected '(' and a list of values at character 6, found '1'"),
    ("a in ()", "expected a value at character 7, found ')'"),
    ("a in (1 2)", "expected a comma or ')' at character 9, found '2'"),
    ("a not = 1", "expected 'in' at character 7, found '='"),
    ("exists = 1", "expected the name of a field at character 8, found '='"),
    (
        "2010 = year",
        "expected the name of a field, 'not', 'exists' or '(' at character 1, found '2010'",
    ),
    ("and = 1", "expected the name of a field, 'not', 'exists' or '(' at character 1, found 'and'"),
    ("a = 1e999", "the number at character 5 is too large: '1e999'"),
    ("a < true", "true and false have no order: use = or != before character 5"),
    ("a = 'x", "the string at character 5 does not end: close it with '; inside the string, write"),
    ("a = \\", "a backslash stands outside of quotes at character 5"),
    ("a" * 201 + " = 1", "the name at character 1 has 201 characters, at most 200 are allowed"),
    ("(" * 33 + "a = 1" + ")" * 33, "is nested deeper than 32 levels at character 34"),
    ("not " * 33 + "a = 1", "is nested deeper than 32 levels at character 133"),
    ("a=1 or " * 100 + "a=1", "has more than 100 comparisons"),
    ("a = " + "1" * 1_000, "has 1004 characters, at most 1000 are allowed"),
]


def read(text: str) -> Filter | str:
    """The filter, or why it is none."""
    try:
        return parse(text)
    except InvalidRequestError as error:
        return str(error)


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_a_filter_has_one_canonical_text(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert str(parse(canonical)) == canonical


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_an_invalid_filter_is_refused_with_the_place_and_what_was_expected(
    text: str, reason: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse(text)
    (violation,) = caught.value.violations
    assert violation.field == "filter"
    assert violation.description.startswith(reason)


def test_as_deep_and_as_many_as_is_allowed() -> None:
    assert str(parse("(" * 32 + "a = 1" + ")" * 32)) == "a = 1"
    assert len(parse("a=1 or " * 99 + "a=1").names) == 100


@pytest.mark.parametrize(
    ("level", "close"), [("(", ")"), ("not ", ""), ("(b = 1 or ", ")"), ("(b = 1 and ", ")")]
)
def test_parentheses_and_not_are_levels_and_lists_and_or_are_none(level: str, close: str) -> None:
    assert parse(level * 32 + "a in (1, 2) and b = 1" + close * 32)
    inside = "not a = 1"
    assert parse(level * 31 + inside + close * 31)
    with pytest.raises(InvalidRequestError, match="deeper than 32 levels"):
        parse(level * 32 + inside + close * 32)
    with pytest.raises(InvalidRequestError, match="deeper than 32 levels"):
        parse(level * 32 + "a not in (1)" + close * 32)


@settings(max_examples=200, print_blob=True)
@given(filters)
def test_the_text_of_a_filter_is_read_as_the_same_filter(wanted: Filter) -> None:
    read = parse(str(wanted), MAX_CANONICAL)
    assert read == wanted
    assert str(read) == str(wanted)  # for Python, True == 1


@MANY
@given(soup | st.text(max_size=60))
def test_any_text_is_a_filter_or_refused_and_a_canonical_text_is_always_one(text: str) -> None:
    found = read(text)
    if isinstance(found, str):
        assert len(found) < 400
    else:
        assert str(parse(str(found), MAX_CANONICAL)) == str(found)


@settings(max_examples=200, print_blob=True)
@given(seed=st.integers(0, 2**32))
def test_the_longest_texts_are_filters_or_refused_too(seed: int) -> None:
    """Nodes accept every filter that a front accepts: it is never longer or deeper there."""
    chance = random.Random(seed)
    shape = chance.choice(["a in(9e14{})", "a=1{}", "{}a=1", "'\"'='\"'{}"])
    piece = chance.choice([",9e14", "or a=1", "not(", "(", " not a not in(1)", "and'\"'='\"\"\"'"])
    room = MAX_CHARACTERS - len(shape)
    text = shape.format(piece * chance.randrange(room // len(piece)))
    text += ")" * text.count("(")
    found = read(text)
    assert isinstance(found, str) or str(parse(str(found), MAX_CANONICAL)) == str(found)


@settings(max_examples=200, print_blob=True)
@given(wanted=filters, passage=metadata)
def test_a_canonical_text_means_the_same(wanted: Filter, passage: dict[str, object]) -> None:
    assert parse(str(wanted), MAX_CANONICAL).matches(passage) == wanted.matches(passage)


def test_a_filter_compares_with_a_bounded_number_of_values() -> None:
    """Every filter that a front takes stays below it; a node takes longer, canonical texts."""
    longest = f"a in({','.join('1' * 497)})"
    assert len(longest) <= MAX_CHARACTERS
    parse(str(parse(longest)), MAX_CANONICAL)
    with pytest.raises(InvalidRequestError, match="compares with more than 500 values: use"):
        parse(f"a in ({', '.join('1' * 400)}) or b in ({', '.join('1' * 101)})", MAX_CANONICAL)
