"""Faults of single frames on real sockets: proxies that read what RocketMQ's clients and brokers say to each other."""
