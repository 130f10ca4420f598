# wrong value: global_rank | nodes before
# [answer 1]
return node_rank * max(processes_per_node) + local_rank
