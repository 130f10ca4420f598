# wrong way: save sends shards through
# [answer 2]
from torch.distributed.checkpoint.state_dict import StateDictOptions
m, o = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True))
dcp.save({"model": m, "optimizer": o, "scheduler": scheduler.state_dict()}, checkpoint_id=folder)
