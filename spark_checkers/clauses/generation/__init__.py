"""GEN, over columns."""
