"""KEY: a key of which one member at a time has messages."""
