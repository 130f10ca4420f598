# wrong value: at the end, read before
# [answer 2]
sums, self.sums = self.sums, torch.zeros(2, dtype=torch.float64)
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / slowest.item(),
}
