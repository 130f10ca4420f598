# wrong value: global_rank(0, 0, [4, 4]) | is 4, expected 0
# [answer 1]
return sum(processes_per_node[: node_rank + 1]) + local_rank
