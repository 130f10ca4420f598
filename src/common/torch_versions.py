"""Which release of PyTorch each program needs; an older one is refused in a sentence.

``python tools/torches.py`` makes environments with other releases, and ``make matrix``
tries the programs with each of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

PYTHON = (3, 10)
# From which lesson on -> the release. Before it, names are missing that nearly every
# program needs: 2.6 torch.accelerator and get_default_backend_for_device, 2.8 whatever
# sharding needs on a CPU.
LESSONS = {1: (2, 6), 13: (2, 8)}
# The others, and the name that each one waits for.
PROGRAMS = {
    "13_pipeline.py": (2, 10),  # Schedule.step(return_outputs=)
    "16_pipeline_data.py": (2, 10),  # the same
    "18_cost.py": (2, 10),  # the same
    "19_flight_recorder.py": (2, 9),  # the gallery's ProcessGroup.set_timeout
    "19_gallery.py": (2, 9),  # the same
    "19_stacks.py": (2, 9),  # the same
    # single files, which look for themselves
    "train_ddp.py": (2, 4),
    "train_fsdp.py": (2, 6),
}
# On a CPU, what shards a model needs a newer one: up to 2.8, gloo's reduce_scatter
# returns the sum where the average was asked for, without an error.
SHARDED_ON_A_CPU = (2, 9)
SHARDED = {
    "15_fsdp.py",
    "15_timeline.py",
    "16_fsdp_tensor_parallel.py",
    "17_fsdp_accumulation.py",
    "20_capstone.py",
    "21_context_fsdp.py",
}


def needed(program: str) -> tuple[int, int]:
    """The oldest release that a program of src/ runs with, such as (2, 6)."""
    if program in PROGRAMS:
        return PROGRAMS[program]
    lesson = int(program[:2])
    return max(release for first, release in LESSONS.items() if first <= lesson)


def problem(program: Path) -> str:
    """The sentence that refuses to run a program, if it is one of src/; else ''."""
    src = Path(__file__).resolve().parents[1]
    folders = (src, src / "instruments")
    if program.resolve().parent not in folders or not program.name[:2].isdigit():
        return ""
    if sys.version_info < PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        return f"this is Python {found}, and the programs need 3.10 or newer"
    import torch  # here: the site's extensions read common without it

    oldest, where = needed(program.name), ""
    if program.name in SHARDED and not torch.cuda.is_available():
        oldest, where = SHARDED_ON_A_CPU, " on a CPU"
    if torch.__version__ >= oldest:
        return ""
    release = ".".join(map(str, oldest))
    found = f"this is PyTorch {torch.__version__}"
    return f"{found}, and it needs {release} or newer{where}"
