"""Feeding: passages that come and go while questions are answered."""
