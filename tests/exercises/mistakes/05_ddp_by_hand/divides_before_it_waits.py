# wrong way: before waiting for it | keep the Work
# [answer 2]
self.works.append(dist.all_reduce(parameter.grad, async_op=True))
self.sums = getattr(self, "sums", []) + [parameter.grad]
# [answer 3]
for total in self.sums:
    total /= dist.get_world_size() ** 2
for work in self.works:
    work.wait()
self.works.clear()
self.sums = []
