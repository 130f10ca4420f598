# wrong value: a legal layout is | data=8.0) | ranks are whole numbers
# [answer 1]
devices = job.nodes * job.per_node
return [Layout(t, p, devices / (t * p)) for t in range(1, devices + 1) for p in range(1, devices + 1) if devices % (t * p) == 0 and job.per_node % t == 0 == job.heads % t and job.layers % p == 0 and job.batch % (devices // (t * p)) == 0]
