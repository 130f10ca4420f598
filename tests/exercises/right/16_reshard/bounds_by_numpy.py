# right: NumPy's whole numbers are bounds, too
# [answer 1]
import numpy as np
edges = np.cumsum([0] + [length // parts + (i < length % parts) for i in range(parts)])
return edges[index], edges[index + 1]
