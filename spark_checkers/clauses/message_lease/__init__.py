"""What breaks clauses of PML, planted in histories."""
