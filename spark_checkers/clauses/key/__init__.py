"""What breaks clauses of KEY, planted in histories."""
