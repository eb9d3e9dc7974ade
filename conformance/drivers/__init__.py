"""Clients in other languages, driven over JSON lines: the protocol, the Java driver, what it tells as a history."""
