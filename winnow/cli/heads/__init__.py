"""`winnow heads`: a store of heads, looked after by people."""
