# wrong value: place( | is 2, expected 3
# [answer 2]
node = 0
if rank >= processes_per_node[node]:
    rank -= processes_per_node[node]
    node += 1
    if rank >= processes_per_node[node]:
        rank -= processes_per_node[node]
        node += 1
return node, rank
