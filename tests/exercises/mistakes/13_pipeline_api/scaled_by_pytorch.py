# wrong value: the gradient of | what was there before was divided, too
# [answer 1]
stage = PipelineStage(layers, dist.get_rank(), dist.get_world_size(), torch.device("cpu"))

def more(scores, targets):
    return share_of_loss(scores, targets, schedule.count) * micro_batches

schedule = Schedule1F1B(stage, n_microbatches=micro_batches, loss_fn=more)
return schedule
# [answer 2]
schedule.count = int((targets != PADDING).sum())
given = (inputs,) if rank == 0 else ()
outputs = schedule.step(*given, target=targets)
told = [share_of_loss(outputs, targets, schedule.count).detach() if rank == last else None]
dist.broadcast_object_list(told, src=last)
return told[0]
