"""Job scripts that the tests of their checks write."""

from __future__ import annotations

from pathlib import Path

HEAD = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
source job_scripts/site_environment.sh
"""
GOOD = (
    HEAD
    + """\
srun torchrun --nnodes="$SLURM_NNODES" --rdzv-backend=c10d --rdzv-endpoint=n1:29400 \\
  --rdzv-id=1 src/08_multinode_torchrun.py 2 1
"""
)


def write(folder: Path, text: str, name: str = "job.sbatch") -> Path:
    """The path of the script."""
    path = folder / name
    path.write_text(text)
    return path
