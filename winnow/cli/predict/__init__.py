"""`winnow predict`: applies heads to texts, at a terminal."""
