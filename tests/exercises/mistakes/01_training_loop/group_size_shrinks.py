# wrong value: the sizes for
# [answer 1]
return min(accumulate, total - index)
