"""Late interaction: scores passages by comparing their token vectors with the question's."""
