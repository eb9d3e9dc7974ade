"""What breaks clauses of FLR, planted in histories."""
