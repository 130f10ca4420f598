# right: a list holds the number of targets; the loss is added up over ranks
# [answer 1]
counts = []

def loss_fn(scores, targets):
    return share_of_loss(scores, targets, counts[-1])

stage = PipelineStage(
    submodule=layers,
    stage_index=dist.get_rank(),
    num_stages=dist.get_world_size(),
    device=torch.device("cpu"),
)
made = Schedule1F1B(stage, micro_batches, loss_fn, scale_grads=False)
made.counts = counts
return made
# [answer 2]
found = []
is_last = rank == last
schedule.counts.append((targets != PADDING).sum())
schedule.step(
    *([inputs] if rank == 0 else []),
    target=targets if is_last else None,
    losses=found if is_last else None,
)
loss = sum(found, torch.zeros((), dtype=inputs.dtype)).detach()
dist.all_reduce(loss)
return loss
