# wrong value: ranks [0, 2] all wrote
# [answer 1]
import os

if int(os.environ["LOCAL_RANK"]) == 0:
    snapshot = {
        "model": ddp_model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
dist.barrier()
