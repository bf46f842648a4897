"""The head node, which applies heads to texts that front nodes have encoded."""
