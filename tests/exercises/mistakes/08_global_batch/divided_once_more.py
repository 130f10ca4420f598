# wrong value: the gradient of the global batch | so multiply the loss by it
# [answer 2]
return losses.sum() / global_batch
