# right: by names, under no_grad, the mean taken when the sum has come
# [answer 1]
with torch.no_grad():
    for _, buffer in module.named_buffers():
        dist.broadcast(tensor=buffer, src=0)
    works = [dist.broadcast(p, 0, async_op=True) for p in module.parameters()]
    for work in works:
        work.wait()
# [answer 2]
work = dist.all_reduce(parameter.grad.div_(dist.get_world_size()), async_op=True)
self.works.insert(0, work)
# [answer 3]
works, self.works = self.works, []
for work in works:
    work.get_future().wait()
