# wrong value: the losses that were given to loss_of_rank
# [answer 2]
losses *= world_size / global_batch
return losses.sum()
