# wrong value: the group of rank
# [answer 2]
apart = math.prod(shape[axis + 1 :])
return [rank + place * apart for place in range(shape[axis])]
