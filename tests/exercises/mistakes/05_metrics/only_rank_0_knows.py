# wrong value: images of equal batches | only one rank holds the result
# [answer 2]
sums = self.sums.clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.reduce(sums, dst=0)
dist.reduce(slowest, dst=0, op=dist.ReduceOp.MAX)
loss_sum, images, slowest_s = *sums.tolist(), slowest.item()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / slowest_s,
}
