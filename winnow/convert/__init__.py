"""Domain values to messages and back: the one room that knows both."""
