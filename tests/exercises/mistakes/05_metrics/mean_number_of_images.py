# wrong value: images of equal batches | is 8.0, expected 24
# [answer 2]
sums = self.sums.clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums, dist.ReduceOp.AVG)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / slowest.item(),
}
