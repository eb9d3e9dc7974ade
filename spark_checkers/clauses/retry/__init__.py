"""RTY, over columns."""
