"""What breaks clauses of DLQ, planted in histories."""
