# right: an iterative fit, with the times as standard deviations
# [answer 1]
return statistics.median(repeats[1:])
# [answer 2]
from scipy.optimize import curve_fit

def line(n, alpha, beta):
    return alpha + beta * n

t = [typical(repeats) for repeats in seconds]
start = (min(t), max(t) / max(sizes))  # from (1, 1), it stops too far away
(alpha, beta), _ = curve_fit(line, sizes, t, p0=start, sigma=t)
return float(alpha), float(beta)
