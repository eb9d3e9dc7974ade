"""The simulated world: the same cores under a virtual clock and a simulated network, everything from one seed."""
