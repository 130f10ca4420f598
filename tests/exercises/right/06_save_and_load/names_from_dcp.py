# right: torch.distributed.checkpoint takes the prefix off
# [answer 1]
from torch.distributed.checkpoint.state_dict import get_model_state_dict

state = get_model_state_dict(ddp_model)
if dist.get_rank() == 0:
    torch.save(
        {"model": state, "optimizer": optimizer.state_dict(), "epochs_run": epochs_run},
        path,
    )
dist.monitored_barrier()
# [answer 2]
import io

snapshot = torch.load(
    io.BytesIO(path.read_bytes()),
    map_location=lambda storage, place: storage,
    weights_only=True,
)
optimizer.load_state_dict(snapshot["optimizer"])
model.load_state_dict(snapshot["model"])
return snapshot["epochs_run"]
