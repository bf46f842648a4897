"""`winnow ask`: questions and their answers at a terminal."""
