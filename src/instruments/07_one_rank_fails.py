"""Let one rank fail, and see which errors it and the others report.

    torchrun --standalone --nproc-per-node=4 --log-dir logs \\
        src/instruments/07_one_rank_fails.py 2
    torchrun --standalone --nproc-per-node=4 --log-dir logs \\
        src/instruments/07_one_rank_fails.py 2 killed

Rank 2 raises an exception, or is killed.
"""

import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import Parser
from common.launchers import read_number
from common.process_group import join


def fail(how: str) -> None:
    """Fail as real runs do: a bad record in this rank's data, or no memory left."""
    if how == "killed":
        signal.raise_signal(signal.SIGKILL)
    raise ValueError("image 1017 has 63 pixels, not 64")


@record  # writes an exception to the file that torchrun has chosen
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("rank", type=int, help="which rank fails")
    parser.add_argument(
        "how", nargs="?", default="raises", choices=("raises", "killed")
    )
    args = parser.parse_args()
    device = join(read_number("LOCAL_RANK"))
    for step in range(5):
        if step == 3 and dist.get_rank() == args.rank:
            fail(args.how)
        # every rank must reach this line
        dist.all_reduce(torch.ones(1000, device=device))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
