# wrong way: make_schedule was asked for 6
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
def loss_fn(scores, targets):
    return share_of_loss(scores, targets, schedule.count)
schedule = Schedule1F1B(stage, ranks, loss_fn, scale_grads=False)
return schedule
