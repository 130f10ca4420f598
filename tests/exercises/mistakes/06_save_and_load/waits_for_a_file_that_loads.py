# wrong value: before rank 0 had written the file | an old one
# [answer 1]
import time

if dist.get_rank() == 0:
    model, states = ddp_model.module.state_dict(), optimizer.state_dict()
    snapshot = {"model": model, "optimizer": states, "epochs_run": epochs_run}
    torch.save(snapshot, path)
complete = False
while not complete:
    try:
        torch.load(path, map_location="cpu", weights_only=True)
        complete = True
    except Exception:
        time.sleep(0.01)
