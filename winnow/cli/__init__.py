"""The commands of `winnow`. The serving packages do not import this package."""
