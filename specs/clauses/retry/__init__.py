"""RTY: what a suspended lane does."""
