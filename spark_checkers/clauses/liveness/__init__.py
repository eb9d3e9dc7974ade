"""LIV, over columns."""
