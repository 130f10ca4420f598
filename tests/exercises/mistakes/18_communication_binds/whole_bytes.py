# wrong value: the all-reduce of | as if rounded | got 0.0
# [answer 1]
return 2 * (ranks - 1) * (alpha + beta * (size // ranks))
