"""The feed service, which stores and deletes passages while questions are answered."""
