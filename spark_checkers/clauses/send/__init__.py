"""What breaks clauses of SND, planted in histories."""
