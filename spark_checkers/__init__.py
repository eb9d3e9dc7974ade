"""The clauses over histories of any size: twins of the Python judges, layout, generator, benchmarks."""
