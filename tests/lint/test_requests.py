"""What a job asks for, and how it's submitted: DT009, DT011 and DT020 to DT025."""

from __future__ import annotations

import json

import pytest

from tests.lint.forms import ONE_NODE, TORCHRUN, of_code
from workshop.lint.linting import lint
from workshop.lint.report import render

SBATCH = "#!/bin/bash\n#SBATCH --nodes=1\n"
ARRAY = SBATCH + "#SBATCH --array={}\n#SBATCH --output={}\npython a.py\n"
CHAIN = "J={}\nsbatch --dependency=afterok:{} b.sbatch\n"
MANIFEST = (
    "# a run\napiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    "
    'command: ["torchrun", "--nnodes=2", "train.py"]\n'
)
CASES: dict[str, tuple[str, str, list[str]]] = {
    "number before the type": (
        "DT020",
        SBATCH + "#SBATCH --gres=gpu:4:a100,nvme:1\n",
        ["3 error"],
    ),
    "number before the type, for a step": (
        "DT020",
        SBATCH + "srun --gpus-per-node=2:h100 python a.py\n",
        ["3 error"],
    ),
    "number before the type, on a command line": (
        "DT020",
        "salloc --gpus=2:v100 -t 30\n",
        ["1 error"],
    ),
    "type before the number": ("DT020", SBATCH + "#SBATCH --gres=gpu:a100:4\n", []),
    "number alone": ("DT020", SBATCH + "#SBATCH --gres=gpu:4\n", []),
    "slice of a GPU": ("DT020", SBATCH + "#SBATCH --gres=gpu:a100_3g.20gb:1\n", []),
    "sockets of the GPUs": ("DT020", SBATCH + "#SBATCH --gres=gpu:v100:2(S:0)\n", []),
    "two types": ("DT020", SBATCH + "#SBATCH --gpus=a100:2,v100:1\n", []),
    "memory of a node, and of a core": (
        "DT021",
        SBATCH + "#SBATCH --mem-per-cpu=4G\n#SBATCH --mem=64G\n",
        ["4 error"],
    ),
    "memory of a node": ("DT021", SBATCH + "#SBATCH --mem=64G\n", []),
    "memory that is switched off": (
        "DT021",
        SBATCH + "#SBATCH --mem=64G\n##SBATCH --mem-per-cpu=4G\n",
        [],
    ),
    "options behind the script": (
        "DT022",
        "sbatch -J a train.sbatch base.yaml --nodes=4\n",
        ["1 warning"],
    ),
    "short options behind the script": (
        "DT022",
        "sbatch train.sbatch -N 4 -t 12:00:00\n",
        ["1 warning"],
    ),
    "options of the script": ("DT022", "sbatch train.sbatch -n 4 -t fast\n", []),
    "options in front of the script": (
        "DT022",
        "sbatch --nodes=4 train.sbatch base.yaml --lr 3\n",
        [],
    ),
    "options of a program": (
        "DT022",
        "sbatch run.sh python train.py --nodes=4\nsbatch run.sh a.py --time 3\n",
        [],
    ),
    "options of a wrapped command": (
        "DT022",
        "sbatch --wrap 'srun --nodes=4 hostname' --nodes=4\n",
        [],
    ),
    "words for a number": ("DT023", CHAIN.format("$(sbatch a)", "$J"), ["1 error"]),
    "words in quotes": ("DT023", CHAIN.format('"$(sbatch a)"', "${J}"), ["1 error"]),
    "words of backticks": ("DT023", CHAIN.format("`sbatch -N 2 a`", "$J"), ["1 error"]),
    "number alone of a job": (
        "DT023",
        CHAIN.format("$(sbatch --parsable -N 2 a)", "$J"),
        [],
    ),
    "last of the words": (
        "DT023",
        CHAIN.format("$(sbatch a | awk '{print $4}')", "$J"),
        [],
    ),
    "last of the words, later": ("DT023", CHAIN.format("$(sbatch a)", "${J##* }"), []),
    "last of the words, in between": (
        "DT023",
        CHAIN.format("$(sbatch a)\nJ=${J##* }", "$J"),
        [],
    ),
    "options in a variable that may hold it": (
        "DT023",
        CHAIN.format("$(sbatch $OPTS a)", "$J"),
        [],
    ),
    "number that nothing needs": ("DT023", "J=$(sbatch a)\necho $J\n", []),
    "number of qsub": (
        "DT023",
        "J=$(qsub a.pbs)\nqsub -W depend=afterok:$J b.pbs\n",
        [],
    ),
    "one file": ("DT024", ARRAY.format("0-9", "a.log"), ["4 warning"]),
    "one file for the whole array": ("DT024", ARRAY.format("1,4", "%A"), ["4 warning"]),
    "file of each task": ("DT024", ARRAY.format("0-9", "%A_%a.log"), []),
    "file with the number of each": ("DT024", ARRAY.format("0-9%2", "a-%4a"), []),
    "file with the job of each task": ("DT024", ARRAY.format("0-9", "%x-%j"), []),
    "array of one": ("DT024", ARRAY.format("5", "a.log"), []),
    "no file": ("DT024", ARRAY.format("0-9", "/dev/null"), []),
    "file that is appended to": (
        "DT024",
        ARRAY.format("0-9", "a.log\n#SBATCH --open-mode=append"),
        [],
    ),
    "typographic quotes": (
        "DT025",
        ONE_NODE + "srun bash -c \u201cpython a.py\u201d\n",
        ["4 error"],
    ),
    "typographic quotes in quotes": (
        "DT025",
        ONE_NODE + 'srun bash -c "python a.py --name \u2018b\u2019"\n',
        ["4 error"],
    ),
    "typographic quotes of a value": ("DT025", "A=\u201cb c\u201d\n", ["1 error"]),
    "typographic dash": ("DT025", ONE_NODE + "srun \u2013n 2 ./a\n", ["4 error"]),
    "typographic dash of a directive": (
        "DT025",
        "#!/bin/bash\n#SBATCH \u2014nodes=2\n",
        ["2 error"],
    ),
    "blank of a web page": ("DT025", ONE_NODE + "srun\u00a0./a\n", ["4 error"]),
    "typographic quotes of a message": ("DT025", "echo \u201cdone\u201d\n", []),
    "typographic quotes in a text": ("DT025", "python a.py 'don\u2019t \u2013x'\n", []),
    "dash between words": ("DT025", "./a.sh one \u2013 two\n", []),
    "typographic quotes of a comment": (
        "DT025",
        "# \u201ca\u201d \u2013n\n./a.sh\n",
        [],
    ),
    "ppn in a select": (
        "DT009",
        "#!/bin/bash\n#PBS -l select=1:ppn=16:gpus=4\n",
        ["2 error"],
    ),
    "ppn beside nodes": ("DT009", "#!/bin/bash\n#PBS -l nodes=1:ppn=16:gpus=4\n", []),
    "cores of a select": ("DT009", "#!/bin/bash\n#PBS -l select=1:ncpus=16\n", []),
    "manifest": ("DT011", MANIFEST, ["1 warning"]),
    "manifest behind a line": ("DT011", "---\n" + MANIFEST, ["1 warning"]),
    "manifest that a script writes": (
        "DT011",
        "#!/bin/bash\nkubectl apply -f - <<END\n" + MANIFEST + "END\n",
        [],
    ),
    "script for LSF": ("DT011", "#!/bin/bash\n#BSUB -n 2\n./a\n", ["2 note"]),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_request_is_told(code, text, told):
    assert of_code(text, code) == told


@pytest.mark.parametrize(
    ("text", "code", "cure"),
    [
        (CASES["number before the type"][1], "DT020", "--gres=gpu:a100:4,nvme:1"),
        (CASES["one file"][1], "DT024", "--output=a-%A_%a.log"),
        (CASES["one file for the whole array"][1], "DT024", "--output=%A_%a"),
        (ARRAY.format("0-9", "l.d/a"), "DT024", "--output=l.d/a-%A_%a"),
        (CASES["ppn in a select"][1], "DT009", "#PBS -l select=1:ncpus=16:ngpus=4"),
        (CASES["typographic quotes"][1], "DT025", 'srun bash -c "python a.py"'),
        (CASES["typographic dash"][1], "DT025", "srun -n 2 ./a"),
        (CASES["typographic dash of a directive"][1], "DT025", "#SBATCH --nodes=2"),
        (
            CASES["options behind the script"][1],
            "DT022",
            "sbatch --nodes=4 train.sbatch ...",
        ),
    ],
)
def test_cure_can_be_copied(text, code, cure):
    (found,) = (each for each in lint(text) if each.rule.code == code)
    assert found.cure == cure


def test_text_of_a_variable_may_have_more_lines_than_the_file():
    text = (
        ONE_NODE
        + "A=$'x;\\n\\n\\n'\nB='a\n\n\n'\nsrun bash -c \"$B$B python \u201ca\u201d\""
    )
    assert {each.rule.code for each in lint(text)} >= {"DT025"}


def test_nothing_in_a_manifest_is_taken_for_a_command():
    assert {each.rule.code for each in lint(MANIFEST)} == {"DT011"}
    assert [each.severity for each in lint(MANIFEST, "job.yaml")] == ["note"]


def test_note_comes_last_and_is_counted():
    text = "#!/bin/bash\n#BSUB -n 2\n" + "python -m torch.distributed.launch a.py\n"
    shown = render(lint(text, "a.lsf"), ["a.lsf"], "text")
    assert shown.index("warning DT114") < shown.index("note DT011")
    assert shown.endswith("1 warning, 1 note")
    results = json.loads(render(lint(text, "a.lsf"), ["a.lsf"], "sarif"))["runs"][0]
    assert [each["level"] for each in results["results"]] == ["note", "warning"]


def test_launcher_behind_plain_quotes_is_seen():
    text = ONE_NODE + f'srun -n 4 bash -c "{TORCHRUN[:-1]}"\n'
    assert "DT102" in {each.rule.code for each in lint(text)}
