"""SND, over columns."""
