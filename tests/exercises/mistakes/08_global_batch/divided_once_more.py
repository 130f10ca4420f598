# wrong value: the gradient of the global batch | divided by the world size twice
# [answer 2]
return losses.sum() / global_batch
