"""PML, over columns."""
