# wrong value: the gradient of the global batch
# [answer 2]
return losses.sum() / world_size
