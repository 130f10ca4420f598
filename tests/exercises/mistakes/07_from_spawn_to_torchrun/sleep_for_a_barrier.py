# wrong value: before rank 0 had written
# [answer 2]
import time

if dist.get_rank() == 0:
    torch.save(model.state_dict(), path)
time.sleep(2)
