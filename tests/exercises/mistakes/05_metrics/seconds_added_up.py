# wrong value: at the end, read before
# [answer 2]
self.seconds = getattr(self, "seconds", 0.0) + seconds
sums = self.sums.clone()
slowest = torch.tensor(self.seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / slowest.item(),
}
