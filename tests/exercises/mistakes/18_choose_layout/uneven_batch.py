# wrong value: breaks a rule
# [answer 1]
devices, found = job.nodes * job.per_node, []
for tensor in range(1, job.per_node + 1):
    for pipeline in range(1, job.layers + 1):
        data = devices // (tensor * pipeline)
        even = tensor * pipeline * data == devices and job.layers % pipeline == 0
        if even and job.per_node % tensor == 0 and job.heads % tensor == 0:
            found.append(Layout(tensor, pipeline, data))
return found
