"""Real parts on this machine: child processes, RocketMQ's jars, Apache clusters, a Docker engine, and what is missing."""
