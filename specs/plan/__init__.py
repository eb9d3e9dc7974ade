"""Plan v2: what a run is to do, as data."""
