# wrong value: choice for 20 parameters | is (4, 1, 1), expected (2, 1, 2)
# [answer 3]
good = [
    layout
    for layout in legal_layouts(job)
    if state_bytes(job, layout) <= job.memory // 10 * 6
    and (layout.pipeline == 1 or job.batch // layout.data >= 4 * layout.pipeline)
]
return min(good, key=lambda x: (x.tensor * x.pipeline, -x.tensor), default=None)
