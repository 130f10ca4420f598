"""A rank is started in a shell that has none of this shell's variables, as by ssh."""

import os
import subprocess
import sys

import torch.distributed as dist

NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def start_elsewhere():
    os.environ.update(RANK="0", WORLD_SIZE="1")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    told = []
    ssh = ["env", "-i", *told]  # a shell on another node starts without them
    return subprocess.run([*ssh, sys.executable, __file__, "rank"]).returncode


if len(sys.argv) < 2:
    sys.exit(start_elsewhere())
dist.init_process_group("gloo")
print(f"connected, {dist.get_world_size()} rank", flush=True)
dist.destroy_process_group()

# The cure: A rank is started in a shell that gets the four variables, as by ssh.
#
# -    told = []
# +    told = [f"{name}={os.environ[name]}" for name in NAMES]
