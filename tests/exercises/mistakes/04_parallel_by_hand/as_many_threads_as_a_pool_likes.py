# wrong way: the 40 parts never ran at the same time
# [answer 1]
on = torch.is_grad_enabled()
def run(r, c):
    with torch.set_grad_enabled(on): return r(c)
with ThreadPoolExecutor() as pool:
    return list(pool.map(run, replicas, chunks))
