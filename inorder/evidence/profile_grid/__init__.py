"""Every profile and every case, on every body of the reference: simulated, on sockets, and killed and started again.

python -m inorder.evidence.profile_grid        (or `make everywhere`)
"""
