"""CMT: which offsets a consumer may report."""
