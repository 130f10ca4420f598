# wrong value: images_per_s when rank 1 is slow
# [answer 2]
sums = self.sums.clone()
first = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.broadcast(first, src=0)
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / first.item(),
}
