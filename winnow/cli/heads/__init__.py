"""`winnow heads`: publishes, lists and verifies the heads of a store."""
