# wrong value: changed its list
# [answer 2]
node_rank = 0
while rank >= processes_per_node[0]:
    rank -= processes_per_node.pop(0)
    node_rank += 1
return node_rank, rank
