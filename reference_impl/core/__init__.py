"""Sans-io cores: `handle(now_ms, input) -> effects`. Time, bytes and choices are handed in."""
