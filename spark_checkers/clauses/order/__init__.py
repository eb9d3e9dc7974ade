"""What breaks clauses of ORD, planted in histories."""
