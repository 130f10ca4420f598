# wrong way: micro-batches at a time: 1f1b holds
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
from torch.distributed.pipelining import ScheduleGPipe
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
def loss_fn(scores, targets):
    return share_of_loss(scores, targets, schedule.count)
schedule = ScheduleGPipe(stage, micro_batches, loss_fn, scale_grads=False)
return schedule
