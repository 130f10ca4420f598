"""Statuses that end a job too early, or are lost: DT312 and DT313."""

from __future__ import annotations

import pytest

from tests.lint.forms import FOUR_TASKS, ONE_NODE, TORCHRUN, of_code

READS = "read -r -d '' RUN <<EOF{}\n" + TORCHRUN + 'EOF\nbash -c "$RUN"\n'
FAILS = TORCHRUN.rstrip("\n")
CASES: dict[str, tuple[str, str, list[str]]] = {
    "text that read ends the job with": (
        "DT312",
        ONE_NODE + "set -euo pipefail\n" + READS.format(""),
        ["5 error"],
    ),
    "the same by an option of bash": (
        "DT312",
        ONE_NODE.replace("bash", "bash -e") + READS.format(""),
        ["4 error"],
    ),
    "text that read -rd ends the job with": (
        "DT312",
        ONE_NODE + "set -e\n" + READS.format("").replace("-r -d", "-rd"),
        ["5 error"],
    ),
    "list from a string": (
        "DT312",
        ONE_NODE + "set -e\nread -r -d '' -a NODES <<< \"$LIST\"\npython a.py\n",
        ["5 error"],
    ),
    "names of files, which zero bytes end": (
        "DT312",
        ONE_NODE + "set -e\nread -r -d '' FILE < <(find . -print0)\npython $FILE\n",
        [],
    ),
    "text and || true": (
        "DT312",
        ONE_NODE + "set -e\n" + READS.format(" || true"),
        [],
    ),
    "text without set -e": ("DT312", ONE_NODE + READS.format(""), []),
    "text after set +e": (
        "DT312",
        ONE_NODE + "set -e\nset +e\n" + READS.format(""),
        [],
    ),
    "text after set -e in a subshell": (
        "DT312",
        ONE_NODE + "(set -e; cd /tmp)\n" + READS.format(""),
        [],
    ),
    "text before set -e": ("DT312", ONE_NODE + READS.format("") + "set -e\n", []),
    "line that is read": (
        "DT312",
        ONE_NODE + "set -e\nread -r RUN <<EOF\ntrain.py\nEOF\npython $RUN\n",
        [],
    ),
    "launch in a text that read keeps": (
        "DT301",
        FOUR_TASKS
        + "read -r -d '' RUN <<EOF\ncd /opt\npython train.py\nEOF\n"
        + 'srun bash -c "$RUN"\n',
        ["8 warning"],
    ),
    "|| true": ("DT313", ONE_NODE + FAILS + " || true\n", ["4 warning"]),
    "|| :": ("DT313", ONE_NODE + FAILS + " || :\nrm -r a\n", ["4 warning"]),
    "&& and || with a message each": (
        "DT313",
        ONE_NODE + FAILS + ' && echo "ok" || echo "failed"\n',
        ["4 warning"],
    ),
    "message, and the job ends": (
        "DT313",
        ONE_NODE + FAILS + " || { echo failed; exit 1; }\n",
        [],
    ),
    "status that is kept": (
        "DT313",
        ONE_NODE + FAILS + " || status=$?\nexit $status\n",
        [],
    ),
    "result that is looked at": (
        "DT313",
        ONE_NODE + FAILS + " || true\nif [ ! -f done ]; then exit 1; fi\n",
        [],
    ),
    "plot after the training": (
        "DT313",
        ONE_NODE + TORCHRUN + "python plot.py || true\n",
        [],
    ),
    "one run of several": (
        "DT313",
        ONE_NODE + f"for seed in 1 2; do\n  {FAILS} --seed $seed || true\ndone\n",
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_status_that_does_not_fit_is_told(code, text, told):
    assert of_code(text, code) == told
