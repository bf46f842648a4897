"""Makes training questions with hard negatives, which are mistakes of the retriever."""
