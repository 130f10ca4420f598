# wrong value: the gradient of the global batch
# [answer 2]
return losses.sum() / global_batch
