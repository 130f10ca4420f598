# wrong value: images_per_s when rank 1 is slow
# [answer 2]
sums = torch.cat([self.sums, torch.tensor([seconds], dtype=torch.float64)])
dist.all_reduce(sums)
loss_sum, images, all_seconds = sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images * dist.get_world_size() / all_seconds,
}
