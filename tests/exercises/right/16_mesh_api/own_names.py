# right: axes with other names; state by the objects' own functions; another layout
# [answer 1]
mesh = init_device_mesh("cpu", (nodes, per_node), mesh_dim_names=("across", "inside"))
for module in [*reversed(model.blocks), model]:
    fully_shard(module, mesh=mesh["across", "inside"])
# [answer 2]
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
dcp.save(
    {
        "weights": get_model_state_dict(model),
        "training": {
            "optimizer": get_optimizer_state_dict(model, optimizer),
            "rate": scheduler.state_dict(),
        },
    },
    checkpoint_id=str(folder),
)
# [answer 3]
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
from torch.distributed.checkpoint.state_dict import set_model_state_dict
from torch.distributed.checkpoint.state_dict import set_optimizer_state_dict
state = {
    "weights": get_model_state_dict(model),
    "training": {
        "optimizer": get_optimizer_state_dict(model, optimizer),
        "rate": scheduler.state_dict(),
    },
}
dcp.load(state, checkpoint_id=str(folder))
set_model_state_dict(model, state["weights"])
set_optimizer_state_dict(model, optimizer, state["training"]["optimizer"])
scheduler.load_state_dict(state["training"]["rate"])
