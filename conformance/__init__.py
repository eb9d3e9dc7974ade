"""Does this system keep the clauses: targets, machines, reports and the command line."""
