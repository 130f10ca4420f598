# wrong value: the keys of what read returns
# [answer 2]
sums = self.sums.clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images = sums.tolist()
return {"mean_loss": loss_sum / images, "count": images, "speed": images / slowest.item()}
