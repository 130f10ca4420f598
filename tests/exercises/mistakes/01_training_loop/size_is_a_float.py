# wrong value: the sizes for | float
# [answer 1]
first = index // accumulate * accumulate
return min(float(accumulate), total - first)
