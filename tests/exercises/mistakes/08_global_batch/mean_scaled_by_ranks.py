# wrong value: the gradient of the global batch
# [answer 2]
return losses.mean() * world_size / global_batch
