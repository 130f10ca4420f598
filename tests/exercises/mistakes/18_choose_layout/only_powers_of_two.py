# wrong value: is legal, but not listed
# [answer 1]
devices, found = job.nodes * job.per_node, []
for tensor in (1, 2, 4, 8):
    for pipeline in (1, 2, 4, 8, 16, 32, 64, 128):
        data = devices // (tensor * pipeline)
        even = tensor * pipeline * data == devices and job.layers % pipeline == 0
        cut = job.per_node % tensor == 0 and job.heads % tensor == 0
        if even and cut and job.batch % data == 0:
            found.append(Layout(tensor, pipeline, data))
return found
