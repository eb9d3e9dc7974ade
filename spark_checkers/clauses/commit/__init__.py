"""CMT, over columns."""
