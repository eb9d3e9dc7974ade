"""FLR: the offset below which everything is finished, as the store tells it."""
