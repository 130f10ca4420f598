# wrong value: global_rank( | changed its list
# [answer 1]
for _ in range(node_rank):
    local_rank += processes_per_node.pop(0)
return local_rank
