"""LSE, over columns."""
