"""Draw the log of a run in TensorBoard.

python docs/examples/to_tensorboard.py run.jsonl runs/first
tensorboard --logdir runs
"""

import json
import sys

from torch.utils.tensorboard import SummaryWriter

log, folder = sys.argv[1:]
with open(log) as lines, SummaryWriter(folder) as writer:
    for record in map(json.loads, lines):
        step, seconds = record.pop("step"), record.pop("time")
        for name, value in record.items():
            if isinstance(value, list):  # an entry for each rank: the largest one
                name, value = f"largest/{name}", max(value)
            writer.add_scalar(name, value, step, walltime=seconds)
