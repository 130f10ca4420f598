# wrong value: global_rank | nodes before
# [answer 1]
return node_rank * processes_per_node[node_rank] + local_rank
