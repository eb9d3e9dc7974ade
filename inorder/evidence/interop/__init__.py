"""The matrix: every broker with every client, ours and Apache's of two lines, judged by the same clauses.

`python -m inorder.evidence.interop` runs it and refreshes `docs/matrix.md`. The cells off the diagonal are the proof
that the reference is right and not merely consistent with itself: strangers' clients on our broker, ours on theirs.
"""
