"""The clauses: one promise per file, in the reader's order.

Statement, who keeps it, premise, key, sources, the judge, `explain`, the shortest violation, the allowed
lookalike. `specs.clauses.catalogue` lists them.
"""
