"""`winnow ask`: asks questions, and shows the answers at a terminal."""
