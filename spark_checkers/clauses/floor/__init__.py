"""FLR, over columns."""
