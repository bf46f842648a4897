"""The state of a front, for the people who operate it."""
