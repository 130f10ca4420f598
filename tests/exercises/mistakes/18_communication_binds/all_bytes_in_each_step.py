# wrong value: a message with all bytes in each step
# [answer 1]
return 2 * (ranks - 1) * (alpha + beta * size)
