"""PML: who has a message, where messages are leased one by one."""
