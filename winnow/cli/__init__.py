"""The commands for people at a keyboard. The serving packages do not import them."""
