"""A search for trouble: workload and fault schedule drawn together, guided by what they reach, a find made small."""
