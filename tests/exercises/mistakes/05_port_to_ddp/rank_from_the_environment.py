# exception: KeyError | RANK
# [answer 1]
import os
dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=world_size)
