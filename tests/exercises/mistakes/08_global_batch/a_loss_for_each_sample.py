# wrong value: loss_of_rank returned [5], expected one number
# [answer 2]
return losses * world_size / global_batch
