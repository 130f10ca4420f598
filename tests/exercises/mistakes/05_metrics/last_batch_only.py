# wrong value: images of equal batches
# [answer 1]
loss = mean_loss.detach().double()
self.sums = torch.stack([loss * images, loss.new_tensor(images)])
