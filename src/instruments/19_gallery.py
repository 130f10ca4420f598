"""Run one failure of the gallery: what it prints, then how to find it and cure it.

    python src/instruments/19_gallery.py --list
    python src/instruments/19_gallery.py only_rank_0_reduces
    python src/instruments/19_gallery.py only_rank_0_reduces --cured

It ends with the status of the program that it runs.
"""

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import BadInput, Parser, log, one_line_errors
from common.gallery import SYMPTOMS, Failure, GalleryError, find_failure, load_gallery

ROOT = Path(__file__).resolve().parents[2]
CURED = ".workshop/cured"  # below ROOT, which the nodes of a practice cluster see, too


def list_failures(failures: dict[str, Failure]) -> None:
    """Print the names and titles, symptom by symptom."""
    for symptom in SYMPTOMS:
        log(f"It {symptom}:")
        for failure in failures.values():
            if failure.symptom == symptom:
                log(f"  {failure.name:<26} {failure.title}")


def run(command: str) -> int:
    """The exit status of a command in the folder of the workshop, as a shell has it.

    What goes to a pipe, such as that of ``head``, passes through here: the program
    doesn't fail if the reader leaves.
    """
    log(f"$ {command}\n")
    out, err = os.fstat(1), os.fstat(2)
    to, errors_to = None, None
    if stat.S_ISFIFO(out.st_mode):
        to = subprocess.PIPE
        if os.path.samestat(out, err):
            errors_to = subprocess.STDOUT
    with subprocess.Popen(
        ["bash", "-c", command], cwd=ROOT, stdout=to, stderr=errors_to
    ) as process:
        if process.stdout:
            pass_on(process.stdout.fileno())
    status = process.returncode
    return 128 - status if status < 0 else status


def pass_on(output: int) -> None:
    """Write what a program prints for as long as somebody reads it."""
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    read = True
    while block := os.read(output, 65536):
        try:
            while read and block:
                block = block[os.write(1, block) :]
        except BrokenPipeError:
            read = False
    signal.signal(signal.SIGPIPE, before)


def cured_command(failure: Failure) -> str:
    """The command for the cured program, which is written for it.

    Raises:
        BadInput: it can't be written.
    """
    path = f"{CURED}/{failure.name}.py"
    try:
        (ROOT / CURED).mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(failure.cured_text(), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write the cured program: {error}") from None
    return failure.command.replace(failure.program, path)


def explain(failure: Failure) -> None:
    """Print what to ask when a run looks like this, what answers it, and the cure."""
    lines = {"Ask": failure.question, "Tool": failure.tool, "Cure": failure.cure}
    log("")
    for head, text in lines.items():
        log(textwrap.fill(f"{head + ':':<6}{text}", 80, subsequent_indent=" " * 6))
    log(f"Page: docs/lessons/19_when_it_breaks/1_find.rst, and lesson {failure.lesson}")


@one_line_errors
def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it, as it ends ls
    parser = Parser(__doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a name of --list")
    parser.add_argument("--cured", action="store_true", help="run the cured program")
    parser.add_argument("--list", action="store_true", help="show all failures")
    args = parser.parse_args()
    try:
        failures = load_gallery()
        if args.list:
            return list_failures(failures)
        if args.name is None:
            raise BadInput("no failure is named: --list shows all of them")
        failure = find_failure(failures, args.name)
        command = cured_command(failure) if args.cured else failure.command
    except GalleryError as error:
        raise BadInput(str(error)) from None
    status = run(command)
    log(f"\nexit status {status}")
    if not args.cured:
        explain(failure)
    sys.exit(status)


if __name__ == "__main__":
    main()
