# wrong value: place( | float
# [answer 2]
local_rank = float(rank)
for node_rank, count in enumerate(processes_per_node):
    if local_rank < count:
        return node_rank, local_rank
    local_rank -= count
