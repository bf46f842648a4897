"""Text processing: tokenizer, text encoders, word boundaries, entities and answer scores."""
