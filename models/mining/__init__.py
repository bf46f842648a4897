"""Makes training questions whose negatives are mistakes of the retriever."""
