"""A head node: applies heads to texts that front nodes have encoded."""
