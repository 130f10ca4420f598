# wrong value: weights of 1 / t^2
# [answer 2]
import numpy as np

t = np.array([typical(some) for some in seconds])
beta, alpha = np.polyfit(np.array(sizes, dtype=float), t, 1, w=1 / t**2)
return float(alpha), float(beta)
