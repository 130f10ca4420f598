# wrong value: loss of equal batches
# [answer 1]
self.sums += torch.tensor([mean_loss.item(), images])
