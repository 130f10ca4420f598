# wrong value: place(4, [4, 4]) | item 0 | is 0, expected 1
# [answer 2]
for node_rank, count in enumerate(processes_per_node):
    if rank <= count:
        return node_rank, rank
    rank -= count
