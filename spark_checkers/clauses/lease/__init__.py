"""What breaks clauses of LSE, planted in histories."""
