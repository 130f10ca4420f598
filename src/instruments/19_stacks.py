"""Run a program unchanged, and write down where each rank is after some seconds.

    torchrun --standalone --nproc-per-node=2 src/instruments/19_stacks.py 2 \\
        gallery/only_rank_0_reduces.py
    grep -m1 gallery stacks_*.txt

stacks_R.txt holds the lines in which the threads of rank R are, the innermost first.
kill -USR1 PID writes them again at any time.
"""

import argparse
import faulthandler
import os
import runpy
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import BadInput, Parser, one_line_errors, positive_float


# [start watch]
def watch(seconds: float, path: Path) -> None:
    """Write the stacks of all threads to ``path`` after a time, and on SIGUSR1.

    A thread of C does it, so it works while Python waits inside a collective.
    """
    file = path.open("w")  # stays open: it is written to later
    faulthandler.dump_traceback_later(seconds, file=file)
    faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)


# [end watch]


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("seconds", type=positive_float, help="when to write them")
    parser.add_argument("program", metavar="PROGRAM", help="a Python file")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="those of PROGRAM")
    args = parser.parse_args()
    if not Path(args.program).is_file():
        raise BadInput(f"there is no program {args.program}: name a Python file")
    watch(args.seconds, Path(f"stacks_{os.environ.get('RANK', '0')}.txt"))
    sys.argv = [args.program, *args.options]
    # its own folder, in place of src and of this one
    sys.path[:2] = [str(Path(args.program).resolve().parent)]
    runpy.run_path(args.program, run_name="__main__")


if __name__ == "__main__":
    main()
