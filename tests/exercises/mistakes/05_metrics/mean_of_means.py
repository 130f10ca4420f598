# wrong value: loss of unequal batches
# [answer 2]
mean = self.sums[0] / self.sums[1]
images = self.sums[1].clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(mean, dist.ReduceOp.AVG)
dist.all_reduce(images)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
return {
    "loss": mean.item(),
    "images": images.item(),
    "images_per_s": (images / slowest).item(),
}
