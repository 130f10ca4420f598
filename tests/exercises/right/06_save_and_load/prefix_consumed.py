# right: torch's own function takes the prefix away; a broadcast object says it is there
# [answer 1]
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

said = ["not yet"]
if dist.get_rank() == 0:
    state = ddp_model.state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    torch.save(
        {"model": dict(state), "optimizer": optimizer.state_dict(), "epochs_run": int(epochs_run)},
        path,
    )
    said = ["written"]
dist.broadcast_object_list(said, src=0)
# [answer 2]
found = torch.load(path, "cpu", weights_only=True)
optimizer.load_state_dict(found.pop("optimizer"))
model.load_state_dict(found.pop("model"))
(epochs_run,) = found.values()
return epochs_run
