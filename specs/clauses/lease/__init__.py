"""LSE: who may work on a lane, and for how long."""
