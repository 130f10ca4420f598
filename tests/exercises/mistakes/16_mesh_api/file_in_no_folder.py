# exception: parent directory | does not exist | torch.save
# [answer 2]
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions

whole = StateDictOptions(full_state_dict=True)
of_model, of_optimizer = get_state_dict(model, optimizer, options=whole)
state = {"model": of_model, "optimizer": of_optimizer}
state["scheduler"] = scheduler.state_dict()
if dist.get_rank() == 0:
    torch.save(state, folder / "all.pt")
dist.barrier()
