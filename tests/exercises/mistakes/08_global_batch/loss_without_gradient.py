# wrong value: a loss without gradient
# [answer 2]
return losses.detach().sum() * world_size / global_batch
