"""Names and units of the options of sbatch and srun: DT017, DT018 and DT019."""

from __future__ import annotations

import pytest

from tests.lint.forms import ONE_NODE, TWO_NODES, of_code
from workshop.lint.directives import slurm_options
from workshop.lint.options import TABLES, full_name

SALLOC = "salloc --nodes=2 {}\n"
CASES: dict[str, tuple[str, str, list[str]]] = {
    "letter that is missing": (
        "DT017",
        ONE_NODE + "#SBATCH --gpu-per-node=2\n",
        ["4 error"],
    ),
    "letter too many": ("DT017", ONE_NODE + "#SBATCH --partitions=a\n", ["4 error"]),
    "underscores": ("DT017", ONE_NODE + "#SBATCH --gpus_per_node=2\n", ["4 error"]),
    "capitals": ("DT017", ONE_NODE + "#SBATCH --Time=2\n", ["4 error"]),
    "name of another scheduler": (
        "DT017",
        ONE_NODE + "#SBATCH --walltime=1:00:00\n",
        ["4 error"],
    ),
    "abbreviation of one option": (
        "DT017",
        ONE_NODE + "#SBATCH --ntasks-per-n=8\n#SBATCH --licen=a\n",
        [],
    ),
    "abbreviation of several": (
        "DT017",
        ONE_NODE + "#SBATCH --mem-per=8G\n",
        ["4 warning"],
    ),
    "singular, which abbreviates several": (
        "DT017",
        ONE_NODE + "#SBATCH --node=1\n",
        ["4 error"],
    ),
    "options of a site": (
        "DT017",
        ONE_NODE + "#SBATCH --uenv=a --view=b --image=c --volume=d --gpu-mode=e\n",
        [],
    ),
    "comment behind the directive": (
        "DT017",
        ONE_NODE + "#SBATCH -t 60 # not --gpu-per-node\n",
        [],
    ),
    "option of pyxis": (
        "DT017",
        TWO_NODES + "srun -K \\\n  --container-mount=/a python a.py\n",
        ["5 error"],
    ),
    "option of the program": (
        "DT017",
        TWO_NODES + "srun -K python a.py --gpu-per-node=2 --ntask=1\n",
        [],
    ),
    "option of salloc": (
        "DT017",
        SALLOC.format("--gpu-per-node=4 bash"),
        ["1 error"],
    ),
    "option of the command that salloc runs": (
        "DT017",
        SALLOC.format("srun python a.py --gpu-per-node=4"),
        [],
    ),
    "a day that is minutes": ("DT018", ONE_NODE + "#SBATCH -t 24:00\n", ["4 warning"]),
    "a day of PBS": (
        "DT018",
        "#!/bin/bash\n#PBS -l select=1:ncpus=8\n#PBS -l walltime=24:00\n",
        ["3 warning"],
    ),
    "half an hour": ("DT018", ONE_NODE + "#SBATCH --time=30:00\n", []),
    "comment that says hours": (
        "DT018",
        ONE_NODE + "#SBATCH --time=08:00 # 8 hours\n",
        ["4 warning"],
    ),
    "comment that says minutes": (
        "DT018",
        ONE_NODE + "#SBATCH --time=12:00 # minutes\n",
        [],
    ),
    "a day": ("DT018", ONE_NODE + "#SBATCH --time=24:00:00\n", []),
    "minutes and seconds": ("DT018", ONE_NODE + "#SBATCH --time=24:30\n", []),
    "megabytes of a node": ("DT019", ONE_NODE + "#SBATCH --mem=64\n", ["4 warning"]),
    "all memory": ("DT019", ONE_NODE + "#SBATCH --mem=0\n", []),
    "memory with its unit": ("DT019", ONE_NODE + "#SBATCH --mem=64G\n", []),
    "megabytes that are meant": ("DT019", ONE_NODE + "#SBATCH --mem=64000\n", []),
    "megabytes of a core": (
        "DT019",
        ONE_NODE + "#SBATCH --mem-per-cpu=4\n#SBATCH --mem-per-gpu=900\n",
        ["4 warning", "5 warning"],
    ),
    "half a gigabyte of a core": (
        "DT019",
        ONE_NODE + "#SBATCH --mem-per-cpu=512\n",
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_option_is_told(code, text, told):
    assert of_code(text + "srun -K python a.py\n", code) == told


def test_abbreviation_counts_as_its_option():
    assert slurm_options(["--ntasks-per-n=4", "--exclusi"])[0] == {
        "ntasks-per-node": "4",
        "exclusive": "",
    }
    assert full_name("kill-on", "srun") == "kill-on-bad-exit"
    assert full_name("kill-on", "sbatch") == "kill-on-invalid-dep"


@pytest.mark.parametrize("tool", sorted(TABLES))
def test_every_option_is_valid_as_it_is_written(tool):
    for name in TABLES[tool]:
        assert full_name(name, tool) == name
