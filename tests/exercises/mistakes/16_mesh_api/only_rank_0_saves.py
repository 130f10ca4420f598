# hang: rank | only some ranks reach
# [answer 2]
import torch.distributed as dist
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
state["scheduler"] = scheduler.state_dict()
if dist.get_rank() == 0:
    dcp.save(state, checkpoint_id=folder)
