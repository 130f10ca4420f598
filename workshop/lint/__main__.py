"""Lint job scripts with the standard library alone: ``python -m workshop.lint JOB...``.

Exit status: 0 no errors, 1 at least one error, 2 nothing to read.
"""

from __future__ import annotations

import argparse
import sys

from workshop.errors import UserError

from .command import explain, run
from .report import FORMATS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="workshop lint", description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="a script, or -")
    parser.add_argument(
        "--line", action="append", default=[], metavar="COMMAND", help="a launch line"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", dest="form")
    parser.add_argument("--explain", metavar="CODE", help="show a rule with examples")
    given = parser.parse_args(arguments)
    try:
        if given.explain:
            return explain(given.explain)
        return run(given.jobs, given.line, given.form)
    except UserError as error:
        print(f"workshop lint: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # of `| head`
        sys.stderr.close()
        sys.exit(1)
