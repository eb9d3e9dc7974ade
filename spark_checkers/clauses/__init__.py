"""The twins: each clause of `specs.clauses` once more, same folder and file name, over columns.

`spark_checkers.catalogue` lists them.
"""
