"""A text, its tokens and its encoding."""

from dataclasses import dataclass

from winnow.text.encoder import TextEncoding
from winnow.text.tokenizer import Tokens


@dataclass(frozen=True, slots=True)
class EncodedText:
    """What heads are applied to, and what their spans mean."""

    text: str
    tokens: Tokens
    """Those that were encoded."""
    encoding: TextEncoding
    truncated: bool
    """Whether the text had more."""
