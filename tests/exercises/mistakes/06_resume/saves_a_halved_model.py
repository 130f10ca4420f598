# wrong value: of the model it saved | work on a copy
# [answer 2]
states = [torch.empty_like(own) for _ in range(dist.get_world_size())]
dist.gather(own, states if dist.get_rank() == 0 else None)
if dist.get_rank() == 0:
    snapshot = {
        "model": training.model.half().state_dict(),
        "optimizer": training.optimizer.state_dict(),
        "scheduler": training.scheduler.state_dict(),
        "epoch": training.epoch,
        "steps_run": training.steps_run,
        "rng": states,
    }
    torch.save(snapshot, path)
dist.barrier()
