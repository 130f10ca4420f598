# wrong value: of 12, cut into 5 | expected (
# [answer 1]
size = -(-length // parts)
return min(length, index * size), min(length, (index + 1) * size)
