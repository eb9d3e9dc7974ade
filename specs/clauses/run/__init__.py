"""MET: can this run be trusted? Checks, not promises."""
