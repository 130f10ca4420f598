# wrong value: the gradient of | what was there before was divided, too
# [answer 1]
stage = PipelineStage(layers, dist.get_rank(), dist.get_world_size(), torch.device("cpu"))

def more(scores, targets, count):
    return share_of_loss(scores, targets, count) * micro_batches

return Schedule1F1B(stage, n_microbatches=micro_batches, loss_fn=more)
# [answer 2]
count = int((targets != PADDING).sum())
given = (inputs,) if rank == 0 else ()
outputs = schedule.step(*given, target=targets, loss_kwargs={"count": count})
told = [share_of_loss(outputs, targets, count).detach() if rank == last else None]
dist.broadcast_object_list(told, src=last)
return told[0]
