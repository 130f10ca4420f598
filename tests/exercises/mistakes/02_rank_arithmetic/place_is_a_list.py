# wrong value: is a list, expected a tuple
# [answer 2]
node = 0
while rank >= processes_per_node[node]:
    rank -= processes_per_node[node]
    node += 1
return [node, rank]
