"""ORD, over columns."""
