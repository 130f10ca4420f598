# right: the first ranks of the nodes, searched by bisection
# [answer 1]
from itertools import accumulate

first = [0, *accumulate(processes_per_node)]
return first[node_rank] + local_rank
# [answer 2]
from bisect import bisect_right
from itertools import accumulate

ends = list(accumulate(processes_per_node))
node_rank = bisect_right(ends, rank)
return node_rank, rank - (ends[node_rank - 1] if node_rank else 0)
