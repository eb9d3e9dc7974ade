"""The types of columns, and the numbers that stand in them for what is not there."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NOWHERE = -1
"""The position of a row that does not exist."""
NONE = int(np.iinfo(np.int64).min)
"""A number that is missing."""
NEVER = int(np.iinfo(np.int64).max) // 4
"""The end of an operation that is still open: later than every seq and every time."""
NO_TEXT = -1
"""The code of a text that is missing."""
MS = 1000
"""Microseconds in a millisecond."""
