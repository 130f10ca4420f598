# wrong value: of 12, cut into 5 | expected (
# [answer 1]
size = length // parts
stop = length if index == parts - 1 else (index + 1) * size
return index * size, stop
