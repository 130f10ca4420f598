# wrong value: loss_of_rank | returned float, expected Tensor
# [answer 2]
return losses.sum().item() * world_size / global_batch
