# wrong value: place( | unequal
# [answer 2]
return divmod(rank, processes_per_node[0])
