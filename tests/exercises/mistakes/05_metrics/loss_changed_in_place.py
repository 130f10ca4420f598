# wrong value: the loss that was passed
# [answer 1]
with torch.no_grad():
    mean_loss *= images
self.sums += torch.stack([mean_loss.detach().double(), torch.tensor(float(images))])
