# wrong value: coordinates of rank
# [answer 1]
if len(shape) == 1:
    return (rank,)
return (rank // shape[1], rank % shape[1])
