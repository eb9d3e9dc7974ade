"""What breaks clauses of GEN, planted in histories."""
