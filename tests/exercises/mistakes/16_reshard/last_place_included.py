# wrong value: of 12, cut into
# [answer 1]
size, longer = divmod(length, parts)
start = index * size + min(index, longer)
return start, start + size + (index < longer) - 1
