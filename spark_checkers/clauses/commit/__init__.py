"""What breaks clauses of CMT, planted in histories."""
