# wrong value: along axis 0 of (2, 3)
# [answer 2]
apart = math.prod(shape[:axis])
first = rank - coordinates(rank, shape)[axis] * apart
return [first + place * apart for place in range(shape[axis])]
