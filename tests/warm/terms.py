"""Which starts can be warm: those whose server would be no other for them.

What Python and torch read while they are imported is fixed in the server. A start
with another value of such a variable, or an option that only a new interpreter can
obey, is a cold one.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

# Applied to a warm program by `program.py`.
APPLIED = {
    "OMP_NUM_THREADS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "TORCH_DISTRIBUTED_DEBUG",
}
# Read when they are needed, not at import.
READ_LATER = re.compile(
    r"PYTHONSTARTUP$|PYTHON_EXEC$|(CUDA|HIP|ROCR)_VISIBLE_DEVICES$|TORCH_DISABLE_SHARE_RDZV_TCP_STORE$"
    r"|TORCH_(NCCL|FR|GLOO|DIST)_"
)
READ_AT_IMPORT = re.compile(
    r"PYTHON|TORCH_|PYTORCH_|ATEN_|C10_|OMP_|GOMP_|KMP_|MKL_|OPENBLAS_"
    r"|NUMEXPR_|NPY_|SCIPY_|SKLEARN_|JOBLIB_|LOKY_|TQDM_|CUDA_|HIP_|ROCR_"
    r"|LD_|MALLOC_|GLIBC_"
)
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
PLAIN_LOCALES = {"", "C", "POSIX", "C.UTF-8", "C.utf8"}  # UTF-8 in Python, all of them
WARNINGS = {"default", "error", "ignore", "always", "module", "once"}


class Command(NamedTuple):
    """What a command line of Python asks for."""

    kind: str  # "file", "-m" or "-c"
    rest: list[str]  # sys.argv of the program, before runpy puts a path there
    unbuffered: bool
    bytecode: bool
    warnings: list[str]
    faulthandler: bool


def parse(arguments: list[str]) -> Command | None:
    """The command line, or None where only a new interpreter can obey it."""
    unbuffered, bytecode, faulthandler, warnings = False, True, False, []
    words = list(arguments)
    while words and words[0].startswith("-") and words[0] not in ("-", "-c", "-m"):
        option = words.pop(0)
        if option == "-u":
            unbuffered = True
        elif option == "-B":
            bytecode = False
        elif option in ("-W", "-X") and words:
            value = words.pop(0)
            if option == "-W" and value in WARNINGS:
                warnings.append(value)
            elif option == "-X" and value == "faulthandler":
                faulthandler = True
            else:
                return None
        else:
            return None
    if not words or words[0] == "-" or (words[0] in ("-c", "-m") and len(words) == 1):
        return None
    kind = words[0] if words[0] in ("-c", "-m") else "file"
    return Command(kind, words, unbuffered, bytecode, warnings, faulthandler)


def differing(environment: dict[str, str], own: dict[str, str]) -> list[str]:
    """The variables by which imports would have gone another way than the server's."""
    names = {n for n in (*environment, *own) if READ_AT_IMPORT.match(n)} - APPLIED
    names = {n for n in names if not READ_LATER.match(n)}
    found = [
        name
        for name in sorted(names)
        # sklearn and torch set some themselves: os.environ has them by now
        if environment.get(name) not in (own.get(name), os.environ.get(name))
    ]
    locales = {effective_locale(own), effective_locale(environment)}
    if len(locales) > 1 and not locales <= PLAIN_LOCALES:
        found.append("the locale")
    return found


def effective_locale(environment: dict[str, str]) -> str:
    """The locale of text in files and streams."""
    return next((environment[name] for name in LOCALE if environment.get(name)), "")
