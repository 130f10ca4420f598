"""One node's cable carries only 100 Mbit/s, and float32 gradients go through it."""

import subprocess
import time

import torch
import torch.distributed as dist

SENT_AS = torch.float32
SLOW = "tc qdisc replace dev eth0 root tbf rate 100mbit burst 64kb latency 400ms"

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 1:
    subprocess.run(SLOW.split(), check=True)  # plays a damaged cable
gradient = torch.ones(10_000_000)

for step in (1, 2):
    dist.barrier()
    start = time.perf_counter()
    sent = gradient.to(SENT_AS)
    dist.all_reduce(sent)
    seconds = time.perf_counter() - start
    size = f"{sent.numel() * sent.element_size() / 1e6:.0f} MB"
    said = f"rank {rank}: step {step}, all-reduce of {size} in {seconds:.1f} s\n"
    print(said, end="", flush=True)
dist.destroy_process_group()

# The cure: One node's cable carries only 100 Mbit/s, so gradients are sent as bfloat16.
#
# -SENT_AS = torch.float32
# +SENT_AS = torch.bfloat16
