# wrong value: expected (alpha, beta)
# [answer 2]
return min(typical(repeats) for repeats in seconds)
