# wrong value: alpha and bytes per second: return seconds per byte
# [answer 2]
import numpy as np

times = np.array([typical(repeats) for repeats in seconds])
beta, alpha = np.polyfit(sizes, times, 1, w=1 / times)
return alpha, 1 / beta
