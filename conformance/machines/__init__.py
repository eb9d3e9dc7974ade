"""Hypothesis state machines: they draw what happens, the clauses judge what came of it."""
