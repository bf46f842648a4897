"""What may be built may be fed: one limit for texts."""

import pytest

from winnow.domain.passage import Passage
from winnow.domain.write import FedPassage
from winnow.passages.checks import MAX_TEXT, RowError, check_passage
from winnow.passages.feeding import wrong_passage


def test_the_longest_text_that_is_built_is_fed() -> None:
    text = "a" * MAX_TEXT
    check_passage(Passage("a", "", text))
    assert list(wrong_passage(FedPassage(id="a", title="", text=text))) == []


def test_a_longer_text_is_refused_by_both_and_told_how_to_be_cut() -> None:
    text = "a" * (MAX_TEXT + 1)
    with pytest.raises(RowError, match=r"10,001 characters, at most 10,000: .*--cut"):
        check_passage(Passage("a", "", text))
    (wrong,) = wrong_passage(FedPassage(id="a", title="", text=text))
    assert wrong.field == "text"
    assert "at most 10000 are allowed: cut it into passages, as --cut does" in wrong.description
