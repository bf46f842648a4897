"""The life of one question: validate, admit, encode, search, merge."""
