"""Check commit messages: a short subject, a blank line, a body with the reason.

::

    python tools/commit_message.py .git/COMMIT_EDITMSG        # as a commit-msg hook
    python tools/commit_message.py --range origin/main..HEAD  # what a change adds

Exit status: 0 if all is well, or there is nothing to compare with; 1 if a message has
a fault; 2 if the arguments make no sense.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

LONGEST_SUBJECT = 72  # characters: what `git log --oneline` shows in 80 columns
SCISSORS = re.compile(r"^. -+ >8 -+$", re.MULTILINE)  # `git commit --verbose`
SIGNATURE = re.compile(r"[\w-]+-by: ")  # Signed-off-by, Co-authored-by
TO_BE_SQUASHED = ("fixup! ", "squash! ", "amend! ")  # gone before anybody reads them


def git(*arguments: str, text: str | None = None) -> str | None:
    """What git prints, or None if it fails."""
    done = subprocess.run(
        ["git", *arguments],
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        return None
    return done.stdout


def faults(message: str) -> list[str]:
    """What is wrong with a message, each fault with its cure; [] if nothing is."""
    subject, *rest = message.strip().split("\n")
    found = []
    if not subject:
        return ["it is empty: say what the commit does, and why"]
    if len(subject) > LONGEST_SUBJECT:
        found.append(
            f"the subject has {len(subject)} characters, the limit is "
            f"{LONGEST_SUBJECT}: name one idea, and move the rest to the body"
        )
    if rest and rest[0].strip():
        found.append("the second line is not blank: put a blank line below the subject")
    body = [line for line in rest if line.strip() and not SIGNATURE.match(line)]
    if not body:
        found.append("it has no body: say below a blank line why, and what was run")
    return found


def show(name: str, message: str, found: list[str]) -> None:
    subject = message.strip().split("\n")[0]
    print(f"commit_message: {name} {subject}", file=sys.stderr)
    for fault in found:
        print(f"  {fault}", file=sys.stderr)


def without_comments(text: str) -> str:
    """The message that git will keep of what an editor has written."""
    message = SCISSORS.split(text)[0]
    stripped = git("stripspace", "--strip-comments", text=message)
    if stripped is None:
        return message
    return stripped


def check_file(path: Path) -> int:
    """Check the message of the commit that git is about to make."""
    try:
        message = without_comments(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        print(
            f"commit_message: cannot read {path} ({error.strerror}): name the file "
            "that git gives to its commit-msg hook",
            file=sys.stderr,
        )
        return 2
    merging = git("rev-parse", "--quiet", "--verify", "MERGE_HEAD") is not None
    if merging or message.startswith(TO_BE_SQUASHED):
        return 0
    found = faults(message)
    if not found:
        return 0
    show("this message:", message, found)
    print(
        f"  your text is kept: git commit --edit --file={path}",
        file=sys.stderr,
    )
    return 1


def check_range(base: str, tip: str) -> int:
    """Check the commits of ``tip`` that ``base`` doesn't have, except merges."""
    if git("rev-parse", "--quiet", "--verify", f"{base}^{{commit}}") is None:
        print(f"commit_message: no {base}: nothing to compare")
        return 0
    if git("rev-parse", "--quiet", "--verify", f"{tip}^{{commit}}") is None:
        print(
            f"commit_message: git knows no commit {tip}: name one, such as HEAD",
            file=sys.stderr,
        )
        return 2
    if git("merge-base", base, tip) is None:
        # a shallow clone lacks the commit they share, so all of history would count
        print(f"commit_message: {base} and {tip} share no commit: nothing to compare")
        return 0
    listed = git("log", "--no-merges", "-z", "--format=%h %B", f"{base}..{tip}") or ""
    messages = [entry.split(" ", 1) for entry in listed.split("\0") if entry]
    wrong = 0
    for commit, message in messages:
        found = faults(message)
        if found:
            show(commit, message, found)
            wrong += 1
    if wrong:
        print(
            f"  {wrong} of {len(messages)} messages: git rebase --interactive {base} "
            "(reword) changes them",
            file=sys.stderr,
        )
        return 1
    print(f"commit_message: {len(messages)} messages are well formed")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Check one file or a range of commits; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="commit_message",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("file", nargs="?", type=Path, help="a message, as git writes it")
    what.add_argument("--range", metavar="BASE..TIP", help="commits of TIP beyond BASE")
    options = parser.parse_args(arguments)
    if options.range is None:
        return check_file(options.file)
    base, dots, tip = options.range.partition("..")
    if not (base and dots and tip) or tip.startswith("."):
        parser.error(
            f"--range: {options.range!r} is no range: write BASE..TIP, such as "
            "origin/main..HEAD"
        )
    return check_range(base, tip)


if __name__ == "__main__":
    sys.exit(main())
