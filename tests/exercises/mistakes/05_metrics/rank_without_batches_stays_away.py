# hang: rank 1 | only some ranks reach
# [answer 2]
sums = self.sums.clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
if sums[1] > 0:
    dist.all_reduce(sums)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images, slowest_s = *sums.tolist(), slowest.item()
return {
    "loss": loss_sum / max(images, 1),
    "images": images,
    "images_per_s": images / slowest_s,
}
