# wrong value: images_per_s when rank 1 is slow
# [answer 2]
sums = self.sums.clone()
dist.all_reduce(sums)
loss_sum, images = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / seconds,
}
