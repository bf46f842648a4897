"""Training on a GPU, from passages and questions that were tokenised once."""
