# wrong value: what a rank other than 0 gets
# [answer 1]
import os

mean = loss.clone()
dist.all_reduce(mean)
if os.environ["LOCAL_RANK"] != "0":
    return None
return float(mean / dist.get_world_size())
