# wrong value: global_rank
# [answer 1]
return node_rank * (sum(processes_per_node) // len(processes_per_node)) + local_rank
