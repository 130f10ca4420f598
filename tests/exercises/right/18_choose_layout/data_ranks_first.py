# right: data ranks in the outer loop; the best so far, in floats
# [answer 1]
found = []
total = job.nodes * job.per_node
for data in range(1, total + 1):
    if total % data != 0 or job.batch % data != 0:
        continue
    rest = total // data
    for tensor in range(1, rest + 1):
        rests = [rest % tensor, job.per_node % tensor, job.heads % tensor]
        if not any(rests) and job.layers % (rest // tensor) == 0:
            found.append(Layout(tensor=tensor, pipeline=rest // tensor, data=data))
return found
# [answer 2]
import math

part = math.ceil(job.parameters / (layout.tensor * layout.pipeline))
return 4 * part + 12 * math.ceil(part / layout.data)
# [answer 3]
best = None
for layout in legal_layouts(job):
    micro_batches = job.batch // layout.data
    if state_bytes(job, layout) > 0.6 * job.memory:
        continue
    if layout.pipeline > 1 and micro_batches < 4 * layout.pipeline:
        continue
    cut = layout.tensor * layout.pipeline
    if best is None or cut < best.tensor * best.pipeline:
        best = layout
    elif cut == best.tensor * best.pipeline and layout.tensor > best.tensor:
        best = layout
return best
