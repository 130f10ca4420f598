"""Run a program unchanged, and write down each rank's last collectives when it fails.

    torchrun --standalone --nproc-per-node=2 src/instruments/19_flight_recorder.py \\
        gallery/another_order.py
    python -m torch.distributed.flight_recorder.fr_trace --prefix recorder_ .

recorder_R holds those of rank R, with gloo. With NCCL you don't need this program: each
rank writes such a file itself after a time-out.
"""

import argparse
import os
import pickle
import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch.distributed as dist

# not public, nor is there a public way (torch 2.13)
from torch._C._distributed_c10d import _dump_fr_trace

from common.cost.measure import group_named
from common.distributed import BadInput, Parser, one_line_errors

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")  # the last collectives kept


def write_record(path: Path) -> None:
    """Write what PyTorch has recorded on this rank, in the form its analyzer reads."""
    record = pickle.loads(_dump_fr_trace())
    # the analyzer asks for the ranks of each group, which gloo leaves out (torch 2.13)
    groups = {entry["process_group"] for entry in record["entries"]}
    record["pg_config"] = {
        name: {
            "name": name,
            "desc": purpose,
            "ranks": str(dist.get_process_group_ranks(group_named(name))),
        }
        for name, purpose in groups
    }
    path.write_bytes(pickle.dumps(record))


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("program", metavar="PROGRAM", help="a Python file")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="those of PROGRAM")
    args = parser.parse_args()
    if not Path(args.program).is_file():
        raise BadInput(f"there is no program {args.program}: name a Python file")
    sys.argv = [args.program, *args.options]
    # its own folder, in place of src and of this one
    sys.path[:2] = [str(Path(args.program).resolve().parent)]
    path = Path(f"recorder_{os.environ.get('RANK', '0')}").resolve()
    try:
        runpy.run_path(args.program, run_name="__main__")
    finally:
        if dist.is_initialized():
            write_record(path)


if __name__ == "__main__":
    main()
