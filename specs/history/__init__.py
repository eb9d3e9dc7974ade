"""History v2: what happened, one row per operation, and how it is recorded, stored and written by hand."""
