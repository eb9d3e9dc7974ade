"""What breaks each clause of `specs.clauses`, planted in valid histories: same folder and file name as the clause."""
