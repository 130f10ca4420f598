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
# The same, but what is empty or absent is not.
APPLIED_IF_SET = {"TORCH_CPP_LOG_LEVEL"}
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
    names -= {n for n in APPLIED_IF_SET if environment.get(n)}
    names = {n for n in names if not READ_LATER.match(n)}
    if "LD_LIBRARY_PATH" not in own and finds_ours(environment.get("LD_LIBRARY_PATH")):
        names.discard("LD_LIBRARY_PATH")
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


def finds_ours(folders: str | None) -> bool:
    """Whether LD_LIBRARY_PATH leads to no other copy of a library that is loaded here.

    Open MPI sets it for its ranks: its folder has its own libraries, not torch's.
    """
    ours = loaded_libraries()
    for folder in (folders or "").split(os.pathsep):
        if not os.path.isabs(folder):
            return False  # of the client's folder, which may be any
        if not os.path.isdir(folder):
            continue
        for name in os.listdir(folder):
            path = os.path.realpath(os.path.join(folder, name))
            if path not in ours.get(family(name), {path}):
                return False
    return True


def loaded_libraries() -> dict[str, set[str]]:
    """The libraries in this process: what they are called -> their files."""
    with open("/proc/self/maps") as maps:
        files = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    found: dict[str, set[str]] = {}
    for file in files:
        if ".so" in file:
            found.setdefault(family(file), set()).add(os.path.realpath(file))
    return found


def family(file: str) -> str:
    """A library's name without its version: libc.so of /lib/libc.so.6."""
    return os.path.basename(file).partition(".so")[0] + ".so"


def effective_locale(environment: dict[str, str]) -> str:
    """The locale of text in files and streams."""
    return next((environment[name] for name in LOCALE if environment.get(name)), "")
