"""A text is assigned to an unread language only if that is nearly certain."""

import pytest

from winnow.text.language import LanguageCheck

_CHECK = LanguageCheck(["en"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Welche Lizenz hat dieses Programm?", "de"),
        ("Qu'est-ce que Lintian ?", "fr"),
        ("\u8c01\u8d62\u5f97\u4e862015\u5e74\u73af\u6cd5\u81ea\u884c\u8f66\u8d5b\uff1f", "zh"),
        ("What is lintian?", ""),
        ("Who was Gerhard Schr\u00f6der's minister of foreign affairs?", ""),
        ("Debian Policy", ""),
        ("12345", ""),
        ("", ""),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    """Names, numbers and short texts are not taken for another language."""
    assert _CHECK.unread_language(text) == language


def test_all_languages_of_a_bundle_are_read() -> None:
    """A text in any of them is read."""
    both = LanguageCheck(["en", "de"])
    assert both.unread_language("Welche Lizenz hat dieses Programm?") == ""
    assert both.unread_language("What is the licence of this program?") == ""
