# right: numpy's fit of a line, with weights; the median by sorting
# [answer 1]
ordered = sorted(repeats[1:])
half = len(ordered) // 2
return (ordered[half] + ordered[-1 - half]) / 2
# [answer 2]
import numpy as np

times = np.array([typical(repeats) for repeats in seconds])
beta, alpha = np.polyfit(np.array(sizes, dtype=float), times, 1, w=1 / times)
return alpha, beta
