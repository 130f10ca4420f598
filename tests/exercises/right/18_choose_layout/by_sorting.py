# right: one comprehension over the divisors; sorts, and takes the first
# [answer 1]
devices = job.nodes * job.per_node
pairs = [(t, p) for t in range(1, job.per_node + 1) for p in range(1, devices + 1)]
pairs = [(t, p) for t, p in pairs if job.per_node % t == 0 and devices % (t * p) == 0]
grids = [Layout(t, p, devices // (t * p)) for t, p in pairs]
grids = [x for x in grids if not (job.heads % x.tensor or job.layers % x.pipeline)]
return [x for x in reversed(grids) if job.batch % x.data == 0]
# [answer 2]
cut = layout.tensor * layout.pipeline
own = (job.parameters + cut - 1) // cut
return own * 4 + (own + layout.data - 1) // layout.data * 12


# [answer 3]
def price(layout):
    return layout.tensor * layout.pipeline, layout.pipeline


for layout in sorted(legal_layouts(job), key=price):
    if state_bytes(job, layout) * 10 > job.memory * 6:
        continue
    if layout.pipeline > 1 and job.batch < 4 * layout.pipeline * layout.data:
        continue
    return layout
return None
