"""Starting torchrun as a reader's shell would, and what it prints."""

import subprocess
import sys

from tests.launched import environment

LIMIT = 300


def clean_environment():
    """Without the number of threads, which torchrun sets."""
    return {k: v for k, v in environment().items() if k != "OMP_NUM_THREADS"}


def start(folder, *arguments, module="torch.distributed.run", **variables):
    """Start torchrun, its output and errors together."""
    return subprocess.Popen(
        [sys.executable, "-W", "default", "-m", module, *map(str, arguments)],
        cwd=folder,
        env=clean_environment() | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def torchrun(folder, *arguments, status=0, **options):
    """What a run of torchrun prints."""
    process = start(folder, *arguments, **options)
    try:
        output = process.communicate(timeout=LIMIT)[0]
    finally:
        process.kill()
    assert process.returncode == status, output
    return output
