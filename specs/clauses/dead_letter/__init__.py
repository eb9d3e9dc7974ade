"""DLQ: what becomes of a message that was given up."""
