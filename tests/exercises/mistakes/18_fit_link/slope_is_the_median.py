# wrong value: alpha is 2.000033e-05, expected 2e-05
# [answer 2]
t = [typical(repeats) for repeats in seconds]
alpha = min(t)
slopes = [(some - alpha) / n for some, n in zip(t[1:], sizes[1:])]
return alpha, statistics.median(slopes)
