# wrong way: a distributed checkpoint has .metadata and files of each of the 4 ranks
# [answer 2]
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions
options = StateDictOptions(full_state_dict=True)
of_model, of_optimizer = get_state_dict(model, optimizer, options=options)
state = {"model": of_model, "optimizer": of_optimizer}
state["scheduler"] = scheduler.state_dict()
if dist.get_rank() == 0:
    folder.mkdir()
    torch.save(state, folder / "state.pt")
dist.barrier()
# [answer 3]
import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions
options = StateDictOptions(full_state_dict=True)
state = torch.load(folder / "state.pt", weights_only=False)
of_model, of_optimizer = state["model"], state["optimizer"]
how = {"model_state_dict": of_model, "optim_state_dict": of_optimizer}
set_state_dict(model, optimizer, options=options, **how)
scheduler.load_state_dict(state["scheduler"])
