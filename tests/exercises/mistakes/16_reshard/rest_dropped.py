# wrong value: of 12, cut into 5 | expected (
# [answer 1]
size = length // parts
return index * size, (index + 1) * size
