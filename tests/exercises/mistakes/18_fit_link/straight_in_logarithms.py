# wrong value: a link with | alpha is
# [answer 2]
import numpy as np

times = np.array([typical(repeats) for repeats in seconds])
slope, start = np.polyfit(np.log(sizes), np.log(times), 1)
return float(np.exp(start)), float(slope)
