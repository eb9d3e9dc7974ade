"""How a correct system works: sans-io cores, the wire protocol, the simulated world, asyncio shells.

The reference and the judges share words (`specs.vocabulary`, `specs.history`, `specs.plan`), never logic."""
