"""Late interaction: passages are also ranked by comparing their tokens with the question's."""
