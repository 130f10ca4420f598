# wrong value: of 12, cut into 3 | expected (4, 8)
# [answer 1]
size, longer = divmod(length, parts)
start = index * size + min(index, longer)
return start, size + (index < longer)
