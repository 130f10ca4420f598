# wrong value: images_per_s when rank 1 is slow
# [answer 2]
sums = self.sums.clone()
fastest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.all_reduce(fastest, dist.ReduceOp.MIN)
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / fastest.item(),
}
