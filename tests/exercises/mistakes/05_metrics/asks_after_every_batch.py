# wrong way: update called torch.distributed 3 times
# [answer 1]
loss = mean_loss.detach().double()
batch = torch.stack([loss * images, loss.new_tensor(images)])
dist.all_reduce(batch)
self.sums += batch
# [answer 2]
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
loss_sum, images, slowest_s = *self.sums.tolist(), slowest.item()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / slowest_s,
}
