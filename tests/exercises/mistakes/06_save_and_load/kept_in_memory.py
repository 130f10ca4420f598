# exception: AttributeError | kept
# [answer 1]
import copy

state = {
    "model": ddp_model.module.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epochs_run": epochs_run,
}
save_snapshot.kept = copy.deepcopy(state)
if dist.get_rank() == 0:
    torch.save(state, path)
dist.barrier()
# [answer 2]
kept = save_snapshot.kept
model.load_state_dict(kept["model"])
for buffer in model.buffers():
    dist.broadcast(buffer, src=0)
optimizer.load_state_dict(kept["optimizer"])
return kept["epochs_run"]
