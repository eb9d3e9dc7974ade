"""Plan v1: what a run is to do, as data."""
