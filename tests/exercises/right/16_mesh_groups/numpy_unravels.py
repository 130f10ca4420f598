# right: NumPy's whole numbers are places and ranks, too
# [answer 1]
import numpy as np
return np.unravel_index(rank, shape)
