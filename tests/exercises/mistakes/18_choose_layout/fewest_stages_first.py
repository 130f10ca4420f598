# wrong value: is (3, 1, 2), expected (1, 2, 3)
# [answer 3]
good = []
for x in legal_layouts(job):
    enough = x.pipeline == 1 or job.batch // x.data >= 4 * x.pipeline
    if enough and 10 * state_bytes(job, x) <= 6 * job.memory:
        good.append(x)
return min(good, key=lambda x: (x.pipeline, x.tensor), default=None)
