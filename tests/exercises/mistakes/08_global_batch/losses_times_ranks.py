# wrong value: the losses that were given to loss_of_rank | changed: work on a copy
# [answer 2]
losses *= world_size
return losses.sum() / global_batch
