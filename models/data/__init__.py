"""Questions and passages, as files and as values."""
