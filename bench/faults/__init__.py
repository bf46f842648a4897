"""What holds when content nodes die, hang, get slow, or have too much to do."""
