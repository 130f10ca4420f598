# right: all places counted up, and ranks looked up in the list
# [answer 1]
import itertools

return list(itertools.product(*map(range, shape)))[rank]
# [answer 2]
import itertools

everywhere = list(itertools.product(*map(range, shape)))
here = everywhere[rank]
return [
    other
    for other, there in enumerate(everywhere)
    if all(a == b for k, (a, b) in enumerate(zip(here, there)) if k != axis)
]
