# wrong value: are those of relative errors without the square
# [answer 2]
import numpy as np

times = np.array([typical(repeats) for repeats in seconds])
beta, alpha = np.polyfit(sizes, times, 1, w=1 / np.sqrt(times))
return alpha, beta
