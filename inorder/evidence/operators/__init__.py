"""Does anybody notice a slip? Operators changed at random in facts and clauses, and who notices.

`edits` changes a syntax tree, `pools` says in which modules, `loading` runs a changed module without a changed file,
`histories` and `questions` say what it is asked, `trial` who notices. `python -m inorder.evidence.operators` is the
grid.
"""
