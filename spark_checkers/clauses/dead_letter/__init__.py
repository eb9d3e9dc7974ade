"""DLQ, over columns."""
