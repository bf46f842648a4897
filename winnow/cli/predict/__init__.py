"""`winnow predict`: texts and what heads say of them, at a terminal."""
