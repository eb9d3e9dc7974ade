"""Load: how many messages a second, how late, and in how much memory; our broker beside Apache's.

    python -m inorder.evidence.load                  # the table that `make bench` prints
    python -m inorder.evidence.load --soak 300       # five minutes at half of the peak: does memory grow, is any lost?

The same client (`reference_impl.client`, in one process) drives both brokers in the same run, so that a ratio says
something about the broker. It is the client that has one core to itself; what both sides lose by it is the same.
"""
