# wrong value: update cut the caller's loss from its graph | not detach_()
# [answer 1]
self.sums[0] += mean_loss.detach_() * images
self.sums[1] += images
