"""Every chaos scenario on every target that can have it, by so many seeds: is nothing accused falsely, and how soon do
lanes go on?

`python -m inorder.evidence.chaos_grid TARGET...` makes the runs; with --docs it refreshes `docs/chaos-grid.md` and
`docs/recovery.md`.
"""
