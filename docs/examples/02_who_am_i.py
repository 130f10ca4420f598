"""torchrun --standalone --nproc-per-node=4 docs/examples/02_who_am_i.py"""

# [start who]
import os

rank = int(os.environ["RANK"])  # among all processes of the job
local_rank = int(os.environ["LOCAL_RANK"])  # among those on this machine
world_size = int(os.environ["WORLD_SIZE"])  # how many there are

print(f"I am rank {rank} of {world_size}, and I use device {local_rank}")
# [end who]
