"""Feeding: stores and deletes passages while questions are answered."""
