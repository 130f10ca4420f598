# wrong way: read called torch.distributed 3 times
# [answer 2]
loss_sum, images = self.sums.clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(loss_sum)
dist.all_reduce(images)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
return {
    "loss": (loss_sum / images).item(),
    "images": images.item(),
    "images_per_s": (images / slowest).item(),
}
