"""Verdicts: from rows to tallies, from tallies and a profile to a verdict, and the smallest witness."""
