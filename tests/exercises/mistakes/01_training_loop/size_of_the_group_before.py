# wrong value: the sizes for
# [answer 1]
first = max(0, index - accumulate) // accumulate * accumulate
return min(accumulate, total - first)
