"""What breaks clauses of RTY, planted in histories."""
