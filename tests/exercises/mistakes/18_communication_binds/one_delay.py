# wrong value: the time with a single delay
# [answer 1]
return alpha + 2 * (ranks - 1) * beta * size / ranks
