"""Making training questions, with the retriever's own mistakes."""
