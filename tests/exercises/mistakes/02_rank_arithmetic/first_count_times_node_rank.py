# wrong value: global_rank | nodes before
# [answer 1]
return node_rank * processes_per_node[0] + local_rank
