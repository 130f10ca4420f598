# right: every rank writes the same number, in a part of the store of its own
# [answer 2]
table = dist.PrefixStore("nprocs", store)
table.set(environ["NODE_RANK"], str(nprocs))
before = total = 0
for node in range(int(environ["NNODES"])):
    count = int(table.get(str(node)).decode())
    total += count
    if node < int(environ["NODE_RANK"]):
        before += count
return before + local_rank, total
