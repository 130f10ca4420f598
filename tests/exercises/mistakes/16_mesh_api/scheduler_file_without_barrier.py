# wrong value: save returned here before the checkpoint was complete | scheduler.pt was written later
# [answer 2]
import torch, torch.distributed as dist
m, o = get_state_dict(model, optimizer)
dcp.save({"model": m, "optimizer": o}, checkpoint_id=folder)
if dist.get_rank() == 0:
    torch.save(scheduler.state_dict(), folder / "scheduler.pt")
# [answer 3]
import torch
m, o = get_state_dict(model, optimizer)
dcp.load({"model": m, "optimizer": o}, checkpoint_id=folder)
set_state_dict(model, optimizer, model_state_dict=m, optim_state_dict=o)
scheduler.load_state_dict(torch.load(folder / "scheduler.pt"))
