"""What each system keeps, in a user's words: promises by systems, each cell from runs.

python -m inorder.evidence.systems        (or `make systems`)
"""
