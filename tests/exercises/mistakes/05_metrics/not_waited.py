# wrong way: never waited for the Work of all_reduce | keep the Work
# [answer 2]
sums = self.sums.clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums, async_op=True)
dist.all_reduce(slowest, dist.ReduceOp.MAX, async_op=True).wait()
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / max(images, 1),
    "images": images,
    "images_per_s": images / slowest.item(),
}
