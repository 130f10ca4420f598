# wrong value: the sizes that fit was given, afterwards | in another order
# [answer 2]
import numpy as np
sizes.sort()
t = np.array([typical(r) for r in seconds])
b, a = np.polyfit(np.array(sizes, float), t, 1, w=1 / t)
return a, b
