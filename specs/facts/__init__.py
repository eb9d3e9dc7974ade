"""What the rows of a history mean, established once for all clauses."""
