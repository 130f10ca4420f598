# wrong value: the sum of 4 shares of 11 images
# [answer 1]
micro_batches = round(batch_size / len(scores))
return F.cross_entropy(scores, labels) / micro_batches
