# wrong value: breaks a rule
# [answer 1]
devices, found = job.nodes * job.per_node, []
for tensor in range(1, devices + 1):
    for pipeline in range(1, job.layers + 1):
        if devices % (tensor * pipeline) or job.layers % pipeline or job.heads % tensor:
            continue
        data = devices // (tensor * pipeline)
        if job.batch % data == 0:
            found.append(Layout(tensor, pipeline, data))
return found
