"""The cores on real sockets: asyncio bodies, a client, and the one module that reads a clock."""
