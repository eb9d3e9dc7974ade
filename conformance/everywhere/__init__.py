"""Every profile and every case, on every body of the reference: simulated, on sockets, and killed and started again.

python -m conformance.everywhere        (or `make everywhere`)
"""
