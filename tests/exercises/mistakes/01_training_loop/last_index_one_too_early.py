# wrong value: the sizes for
# [answer 1]
first = index - index % accumulate
return min(accumulate, total - first - 1)
