# right: all places counted up, and ranks looked up in the list
# [answer 1]
import itertools

return list(itertools.product(*map(range, shape)))[rank]
# [answer 2]
import itertools

places = list(itertools.product(*map(range, shape)))
mine = places[rank]
return [
    other
    for other, there in enumerate(places)
    if all(a == b for k, (a, b) in enumerate(zip(mine, there)) if k != axis)
]
