# wrong value: the time without the delays
# [answer 1]
return 2 * (ranks - 1) * beta * size / ranks
