"""Values that a script takes where nothing else sets them: DT110 and DT204."""

from __future__ import annotations

import pytest

from tests.lint.forms import FIRST, FOUR_TASKS, ONE_NODE, TORCHRUN, of_code

EIGHT = TORCHRUN.replace("node=4", "node=$N")
LOOPBACK = ': "${MASTER_ADDR:=127.0.0.1}"\nexport MASTER_ADDR\nsrun -K python a.py\n'
CASES: dict[str, tuple[str, str, list[str]]] = {
    "more ranks than GPUs by default": (
        "DT110",
        ONE_NODE + "N=${N:-8}\n" + EIGHT,
        ["5 error"],
    ),
    "more ranks than GPUs by a default of the option": (
        "DT110",
        ONE_NODE + TORCHRUN.replace("=4", "=${NPROC:-8}"),
        ["4 error"],
    ),
    "as many ranks as GPUs by default": ("DT110", ONE_NODE + "N=${N:-4}\n" + EIGHT, []),
    "default that a file may overrule": (
        "DT110",
        ONE_NODE + "source site.sh\nN=${N:-8}\n" + EIGHT,
        [],
    ),
    "default that a branch overrules": (
        "DT110",
        ONE_NODE + "if [ $1 ]; then N=4; fi\nN=${N:-8}\n" + EIGHT,
        [],
    ),
    "first argument of the script": ("DT110", ONE_NODE + "N=${1:-8}\n" + EIGHT, []),
    "localhost that := sets": ("DT204", FOUR_TASKS + LOOPBACK, ["4 warning"]),
    "localhost on one node": ("DT204", ONE_NODE + LOOPBACK, []),
    "localhost for an address that is set above": (
        "DT204",
        FOUR_TASKS + f"MASTER_ADDR={FIRST}\n" + LOOPBACK,
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_default_is_compared_like_a_value(code, text, told):
    assert of_code(text, code) == told
