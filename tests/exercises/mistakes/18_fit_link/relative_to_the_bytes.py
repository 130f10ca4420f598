# wrong value: are those of errors relative to the bytes
# [answer 2]
import numpy as np

times = [typical(repeats) for repeats in seconds]
beta, alpha = np.polyfit(sizes, times, 1, w=1 / np.array(sizes))
return alpha, beta
