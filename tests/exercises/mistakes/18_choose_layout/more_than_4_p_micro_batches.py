# wrong value: batch 16, 1 x 4 devices is None, expected (1, 2, 2)
# [answer 3]
good = []
for x in legal_layouts(job):
    enough = x.pipeline == 1 or job.batch // x.data > 4 * x.pipeline
    if enough and 10 * state_bytes(job, x) <= 6 * job.memory:
        good.append(x)
return min(good, key=lambda x: (x.tensor * x.pipeline, -x.tensor), default=None)
