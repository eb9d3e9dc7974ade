"""Are the two judges of a clause two? Operators changed at random in judges and kernels, and who notices.

`edits` changes a syntax tree, `pools` says in which modules, `loading` runs a changed module without a changed file,
`histories` prepares what the engines are asked about, `trial` says who notices, `similarity` how much the two texts
have in common. `python -m inorder.evidence.operators` is the grid.
"""
