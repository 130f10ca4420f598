# wrong value: along axis 0 of (2, 3)
# [answer 2]
first = rank - coordinates(rank, shape)[axis]
return [first + place for place in range(shape[axis])]
