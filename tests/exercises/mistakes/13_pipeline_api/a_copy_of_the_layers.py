# wrong value: got no gradient
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
import copy
stage = PipelineStage(copy.deepcopy(layers), rank, ranks, torch.device("cpu"))
def loss_fn(scores, targets):
    return share_of_loss(scores, targets, schedule.count)
schedule = Schedule1F1B(stage, micro_batches, loss_fn, scale_grads=False)
return schedule
