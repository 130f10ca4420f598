# wrong value: whole numbers, not [0.0, 3.0]
# [answer 2]
apart = math.prod(shape[axis + 1 :])
first = rank - coordinates(rank, shape)[axis] * apart
return [float(first + place * apart) for place in range(shape[axis])]
