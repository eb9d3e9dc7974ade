"""What breaks clauses of ASG, planted in histories."""
