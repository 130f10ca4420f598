# wrong value: the bottleneck
# [answer 3]
return "data", None
