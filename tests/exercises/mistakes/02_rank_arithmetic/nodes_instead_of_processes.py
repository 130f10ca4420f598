# wrong value: global_rank | [4, 4] | node 1 holds 4 to 7
# [answer 1]
return local_rank * len(processes_per_node) + node_rank
