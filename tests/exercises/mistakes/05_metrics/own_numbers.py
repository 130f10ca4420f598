# wrong value: images of equal batches
# [answer 2]
loss_sum, images = self.sums.tolist()
return {
    "loss": loss_sum / images,
    "images": images,
    "images_per_s": images / seconds,
}
