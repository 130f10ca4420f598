# wrong value: at the end, read before
# [answer 2]
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(self.sums)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images = self.sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / slowest.item(),
}
