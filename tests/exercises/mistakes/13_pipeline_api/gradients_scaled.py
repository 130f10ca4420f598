# wrong value: the gradient of | 1/4 of it: scale_grads is on
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
def loss_fn(scores, targets):
    return share_of_loss(scores, targets, schedule.count)
schedule = Schedule1F1B(stage, micro_batches, loss_fn)
return schedule
