"""Real parts on this machine: processes, RocketMQ's jars, clusters, a Docker engine; and what is missing."""
