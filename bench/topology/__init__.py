"""A cluster whose hosts have networks of their own: rolled, cut off and cut in two."""
