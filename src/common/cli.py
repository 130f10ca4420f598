"""What every training script's command line has in common.

Bad input ends with one line on stderr that names the input and the cure, and with
exit status 2; a traceback is kept for errors of the program itself.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

from tqdm import tqdm

Result = TypeVar("Result")

PATIENCE = 10  # seconds


def say(line: str) -> None:
    """Print a line at once, above a progress bar if there is one.

    Line and line end go out together: ranks that share a terminal or a file then
    do not write into each other's lines.
    """
    tqdm.write(line + "\n", end="")
    sys.stdout.flush()


def speaks_first() -> bool:
    """Whether this rank is the one that says what all ranks find wrong.

    The others wait for :data:`PATIENCE` seconds: whoever started the ranks ends them
    as soon as the first has failed. Who is still there then has an error of its own.
    """
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        if name in os.environ:
            return os.environ[name] == "0"
    return True


class BadInput(Exception):
    """What the user gave cannot work: one sentence that names it and the cure."""


def one_line_errors(main: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate ``main`` so that a :class:`BadInput` ends as one line, status 2."""

    @functools.wraps(main)
    def guarded(*args, **kwargs) -> Result:
        try:
            return main(*args, **kwargs)
        except BadInput as error:
            program = os.path.basename(sys.argv[0])
            print(f"{program}: error: {error}", file=sys.stderr, flush=True)
            sys.exit(2)

    return guarded


class OneLineParser(argparse.ArgumentParser):
    """An ``ArgumentParser`` whose errors are one line, without the usage above."""

    def error(self, message: str) -> NoReturn:
        if not speaks_first():
            time.sleep(PATIENCE)
        self.exit(2, f"{self.prog}: error: {message} (--help shows the usage)\n")


def positive_int(text: str) -> int:
    """The whole number above 0 that ``text`` spells; an argparse type."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def positive_float(text: str) -> float:
    """The finite number above 0 that ``text`` spells; an argparse type."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def training_parser(
    description: str | None, snapshot: str = "snapshot.pt"
) -> OneLineParser:
    """The parser of a training script: ``TOTAL_EPOCHS SAVE_EVERY`` and options.

    ``snapshot`` is the default of ``--snapshot``. Scripts add what only they need.
    """
    parser = OneLineParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "total_epochs",
        metavar="TOTAL_EPOCHS",
        type=positive_int,
        help="epochs of the whole training, those of earlier runs included",
    )
    add(
        "save_every",
        metavar="SAVE_EVERY",
        type=positive_int,
        help="epochs between two snapshots",
    )
    add(
        "--batch-size",
        type=positive_int,
        default=32,
        help="images per step in each process (default: %(default)s)",
    )
    add(
        "--learning-rate",
        type=positive_float,
        default=0.05,
        help="step size of SGD with momentum 0.9 (default: %(default)s)",
    )
    add(
        "--snapshot",
        metavar="FILE",
        type=Path,
        default=Path(snapshot),
        help="state of the training: written every SAVE_EVERY epochs, and "
        "continued from if it is there (default: %(default)s)",
    )
    add(
        "--metrics",
        metavar="FILE",
        type=Path,
        help="write the final numbers to this file as JSON",
    )
    return parser


def parse_training(
    description: str | None,
    *add_options: Callable[[argparse.ArgumentParser], None],
) -> argparse.Namespace:
    """The command line of a training script; each of ``add_options`` adds its own.

    Where results go is tried before anything is computed, by the rank that writes
    them: another node may not even see the folder.
    """
    parser = training_parser(description)
    parser.add_argument(
        "--profile", action="store_true", help="show where the time of a step goes"
    )
    for add in add_options:
        add(parser)
    args = parser.parse_args()
    if speaks_first():
        check_output_file(args.snapshot, "--snapshot")
        if args.metrics:
            check_output_file(args.metrics, "--metrics")
    return args


def check_output_file(path: Path, option: str) -> None:
    """Make sure before a long run that ``path`` can be written at its end.

    Raises:
        BadInput: the folder is missing or not writable, or ``path`` is a folder.
    """
    if path.is_dir():
        raise BadInput(f"{option} {path} is a folder: give the name of a file")
    if not path.parent.is_dir():
        raise BadInput(
            f"{option} {path}: the folder {path.parent} does not exist: "
            "create it or choose another"
        )
    try:
        # permissions alone do not tell: a full or read-only disk refuses, too
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise BadInput(
            f"{option} {path}: cannot write in the folder {path.parent} "
            f"({error.strerror}): choose another"
        ) from error


def write_metrics(
    path: Path,
    *,
    loss: float | None,
    correct: int,
    total: int,
    samples_per_s: float | None,
    world_size: int,
    epochs: int,
) -> None:
    """Write the final numbers of a run as one JSON object.

    ``loss`` is the mean over the last epoch trained, ``samples_per_s`` the
    training throughput of all ranks together; both are null if the snapshot
    already held all epochs, so that nothing was trained. ``correct`` of ``total``
    test images were recognised; their ratio is written as ``accuracy``.
    """
    metrics = {
        "loss": loss,
        "accuracy": correct / total,
        "correct": correct,
        "total": total,
        "samples_per_s": samples_per_s,
        "world_size": world_size,
        "epochs": epochs,
    }
    try:
        path.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write --metrics {path}: {error.strerror}") from error
