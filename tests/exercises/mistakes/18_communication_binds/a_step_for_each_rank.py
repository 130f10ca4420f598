# wrong value: is the time of 2 N steps
# [answer 1]
return 2 * ranks * (alpha + beta * size / ranks) if ranks > 1 else 0.0
