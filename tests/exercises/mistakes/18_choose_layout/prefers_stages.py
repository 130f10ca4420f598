# wrong value: choice for | expected
# [answer 3]
good = []
for layout in legal_layouts(job):
    enough = job.batch // layout.data >= 4 * layout.pipeline
    fits = 10 * state_bytes(job, layout) <= 6 * job.memory
    if fits and (enough or layout.pipeline == 1):
        good.append(layout)
return min(good, key=lambda x: (x.tensor * x.pipeline, x.tensor), default=None)
