"""The tap: a proxy between unmodified clients and a real cluster that records what they ask and are told."""
