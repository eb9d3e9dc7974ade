"""What proves and measures the suite itself; it may use all other packages, and none of them may use it.

Proof: `kill_matrix` (is every known bug found?), `planted` (and bugs that nobody chose?), `false_alarms` (is a correct
system left in peace?), `laws` and `corpus` (do the judges hold under changes of histories, and of themselves?),
`machines` (do the reference's own cores do what their models say?), `fuzzing` (what does it do with bad input?).
Evidence: `interop` (every broker with every client), `profile_grid` (every profile on every body of the reference),
`track_record` (bugs of released brokers). Measures: `load`, `benchmarks`. And `demo` shows it all to a stranger.
This module itself imports nothing: it belongs to the door (see `inorder`).
"""
