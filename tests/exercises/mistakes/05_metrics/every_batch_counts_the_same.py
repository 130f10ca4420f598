# wrong value: loss of unequal batches
# [answer 1]
self.sums[0] += mean_loss.detach()
self.sums[1] += images
self.batches = getattr(self, "batches", 0) + 1
# [answer 2]
sums = torch.cat([self.sums, torch.tensor([self.batches], dtype=torch.float64)])
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
images = sums[1].item()
return {
    "loss": (sums[0] / sums[2]).item(),
    "images": images,
    "images_per_s": images / slowest.item(),
}
