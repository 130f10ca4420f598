# wrong value: are those of the right fit in the wrong order
# [answer 2]
import numpy as np

times = np.array([typical(repeats) for repeats in seconds])
return tuple(np.polyfit(sizes, times, 1, w=1 / times))
