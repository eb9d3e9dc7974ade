"""LIV: that work goes on, once what was broken is healed."""
