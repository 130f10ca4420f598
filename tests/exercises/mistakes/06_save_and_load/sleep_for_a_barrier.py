# wrong value: before rank 0 had written
# [answer 1]
import time

if dist.get_rank() == 0:
    snapshot = {
        "model": ddp_model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
else:
    time.sleep(1)
