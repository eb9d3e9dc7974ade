"""Does each scenario show the bug that it names: in virtual time, and on real sockets?

`python -m inorder.evidence.scenario_matrix` makes the runs; with --docs it refreshes `docs/chaos-matrix.md`.
"""
