"""Does it still, when things break: faults, scenarios, backends and the attestation of every fault."""
