# wrong value: a legal layout is (1, 1, 8) | a tuple, no layout
# [answer 1]
devices = job.nodes * job.per_node
return [
    (t, p, devices // (t * p))
    for t in range(1, job.per_node + 1)
    for p in range(1, job.layers + 1)
    if devices % (t * p) == job.per_node % t == job.heads % t == job.layers % p == 0
    if job.batch % (devices // (t * p)) == 0
]
