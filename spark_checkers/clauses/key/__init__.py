"""KEY, over columns."""
