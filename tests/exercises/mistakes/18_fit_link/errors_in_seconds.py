# wrong value: a noisy link with | are those of errors in seconds, not relative ones
# [answer 2]
import numpy as np

times = [typical(repeats) for repeats in seconds]
beta, alpha = np.polyfit(sizes, times, 1)
return alpha, beta
