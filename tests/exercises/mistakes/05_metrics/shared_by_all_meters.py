# wrong value: a second meter
# [answer 1]
if not hasattr(Meter, "all"):
    Meter.all = torch.zeros(2, dtype=torch.float64)
loss = mean_loss.detach().double()
Meter.all += torch.stack([loss * images, loss.new_tensor(images)])
# [answer 2]
sums = getattr(Meter, "all", self.sums).clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / slowest.item(),
}
