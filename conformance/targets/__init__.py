"""Targets: the systems that the suite can judge. Only a target knows its broker."""
