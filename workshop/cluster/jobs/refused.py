"""Job scripts that a scheduler refuses for how they are written, whatever they do.

The grader reads a program as Python does, which accepts Windows line endings.
``sbatch`` and ``qsub`` don't, so a script is judged here by the bytes of its file.
"""

from __future__ import annotations

import codecs

DOS_LINE_END = b"\r\n"
# what Slurm 22.05 and OpenPBS 23.06 print
OF_DOS_LINES = {
    ".sbatch": [
        "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
        "sbatch: error: instead of expected UNIX line breaks (\\n).",
    ],
    ".pbs": ["qsub: script contains cr, lf"],
}
OF_NO_INTERPRETER = [
    "sbatch: error: This does not look like a batch script.  The first",
    "sbatch: error: line must start with #! followed by the path to an interpreter.",
    "sbatch: error: For instance: #!/bin/sh",
]


def refusal(raw: bytes, suffix: str, name: str) -> list[str]:
    """What the scheduler says to a script, and the cure; [] if it takes the script.

    Args:
        raw: the bytes of the script's file.
        suffix: of that file; files that are no job scripts are never refused.
        name: how the cure names the file.
    """
    if DOS_LINE_END in raw and suffix in OF_DOS_LINES:
        cure = f"give it Linux line endings: sed -i 's/\\r$//' {name}"
        return [*OF_DOS_LINES[suffix], cure]
    if raw.startswith(codecs.BOM_UTF8) and suffix == ".sbatch":
        mark = "".join(f"\\x{byte:02x}" for byte in codecs.BOM_UTF8)
        cure = f"remove the mark before the #!: LC_ALL=C sed -i '1s/^{mark}//' {name}"
        return [*OF_NO_INTERPRETER, cure]
    return []
