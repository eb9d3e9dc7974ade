"""What breaks clauses of LIV, planted in histories."""
