"""Which commit messages are refused, and when there's nothing to compare."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tools import commit_message
from tools.commit_message import LONGEST_SUBJECT, faults

GOOD = "Name the rank that waits\n\nThe verdict named the line only.\n"
OTHER = "Count the ranks\n\nOne was missing.\n"
LONG = "x" * (LONGEST_SUBJECT + 1) + "\n\nWhy.\n"
NO_BODY = "Name the rank that waits\n"
# What git sets while a hook runs would lead to this repository, not to the test's.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=ENVIRONMENT | IDENTITY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Done(NamedTuple):
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def check(monkeypatch, capsys):
    """Run the command in a folder, as if typed there."""
    for name in set(os.environ) - set(ENVIRONMENT):
        monkeypatch.delenv(name)

    def check(folder: Path, *arguments: str) -> Done:
        monkeypatch.chdir(folder)
        try:
            status = commit_message.main(list(arguments))
        except SystemExit as left:
            status = int(left.code or 0)
        return Done(status, *capsys.readouterr())

    return check


def commit(folder: Path, message: str) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", f"--message={message}")


@pytest.fixture
def published(tmp_path):
    """A repository with one commit, whose message is older than the rules."""
    folder = tmp_path / "published"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "old")
    return folder


@pytest.fixture
def clone(published):
    """A clone of it, on a branch for a change."""
    folder = published.parent / "clone"
    git(published.parent, "clone", "--quiet", str(published), str(folder))
    git(folder, "switch", "--quiet", "--create", "change")
    return folder


# one message


@pytest.mark.parametrize(
    "message",
    [
        GOOD,
        "x" * LONGEST_SUBJECT + "\n\nWhy.\n",
        "Name it\n\nWhy.\n\nSigned-off-by: A <a@example.org>\n",
    ],
)
def test_message_with_a_short_subject_and_a_reason_is_accepted(message):
    assert faults(message) == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("\n", "it is empty"),
        (LONG, "the subject has 73 characters, the limit is 72"),
        ("Name it\nbecause\n", "the second line is not blank"),
        (NO_BODY, "it has no body"),
        ("Name it\n\n\n", "it has no body"),
        ("Name it\n\nSigned-off-by: A <a@example.org>\n", "it has no body"),
    ],
)
def test_fault_of_a_message_is_named(message, words):
    (fault,) = faults(message)
    assert words in fault


def test_message_with_two_faults_names_both():
    assert len(faults("x" * 80)) == 2


# git's hook


def test_hook_reads_what_git_will_keep_of_the_file(check, clone):
    comments = "# Please enter the message\n# On branch change\n"
    diff = "# ------------------------ >8 ------------------------\ndiff --git a b\n"
    path = clone / "MESSAGE"
    path.write_text(GOOD + comments + diff)
    assert check(clone, "MESSAGE").returncode == 0
    path.write_text(NO_BODY + "\n" + comments + diff)
    refused = check(clone, "MESSAGE")
    assert refused.returncode == 1
    assert "it has no body" in refused.stderr
    assert "git commit --edit --file=MESSAGE" in refused.stderr


def test_hook_leaves_merges_and_what_will_be_squashed_alone(check, clone):
    path = clone / "MESSAGE"
    path.write_text("fixup! Name the rank that waits\n")
    assert check(clone, "MESSAGE").returncode == 0
    path.write_text("Merge branch 'other'\n")
    assert check(clone, "MESSAGE").returncode == 1
    commit(clone, GOOD)
    git(clone, "switch", "--quiet", "--create", "other", "main")
    commit(clone, OTHER)
    git(clone, "merge", "--quiet", "--no-ff", "--no-commit", "change")
    assert check(clone, "MESSAGE").returncode == 0


# the commits of a change


def test_only_what_the_change_adds_is_checked(check, clone):
    commit(clone, GOOD)
    done = check(clone, "--range", "origin/main..HEAD")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "commit_message: 1 messages are well formed\n"


def test_each_wrong_message_of_a_change_is_named(check, clone):
    commit(clone, GOOD)
    commit(clone, NO_BODY)
    commit(clone, LONG)
    commit(clone, "fixup! Name the rank that waits")
    done = check(clone, "--range", "origin/main..HEAD")
    assert done.returncode == 1
    commits = git(clone, "log", "--format=%h", "-3").split()
    for name in commits:
        assert f"commit_message: {name} " in done.stderr
    assert "3 of 4 messages: git rebase --interactive origin/main" in done.stderr


def test_merges_are_not_checked(check, clone):
    commit(clone, GOOD)
    git(clone, "switch", "--quiet", "--create", "other", "main")
    commit(clone, OTHER)
    git(clone, "merge", "--quiet", "--no-ff", "--message=Merge branch", "change")
    done = check(clone, "--range", "origin/main..HEAD")
    assert done.returncode == 0
    assert done.stdout == "commit_message: 2 messages are well formed\n"


def test_without_origin_there_is_nothing_to_compare(check, published):
    done = check(published, "--range", "origin/main..HEAD")
    assert done.returncode == 0
    assert done.stdout == "commit_message: no origin/main: nothing to compare\n"


def test_archive_without_history_has_nothing_to_compare(check, tmp_path):
    assert (
        "nothing to compare" in check(tmp_path, "--range", "origin/main..HEAD").stdout
    )


def test_shallow_clone_of_main_is_accepted(check, published):
    commit(published, "also old")
    source = f"file://{published}"
    git(published.parent, "clone", "--quiet", "--depth=1", source, "shallow")
    done = check(published.parent / "shallow", "--range", "origin/main..HEAD")
    assert done.returncode == 0


def test_history_that_a_shallow_clone_lacks_does_not_count(check, published):
    """Without the commit where a change left main, all of its history is "new"."""
    git(published, "switch", "--quiet", "--create", "change")
    commit(published, "old, but of the change")
    git(published, "switch", "--quiet", "main")
    commit(published, "also old")
    source = f"file://{published}"
    shallow = ("--quiet", "--depth=1", "--no-single-branch", "--branch=change")
    git(published.parent, "clone", *shallow, source, "shallow")
    done = check(published.parent / "shallow", "--range", "origin/main..HEAD")
    assert done.returncode == 0
    assert "share no commit: nothing to compare" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of the arguments file --range is required"),
        (["--range", "HEAD"], "'HEAD' is no range: write BASE..TIP"),
        (["--range", "main...HEAD"], "'main...HEAD' is no range: write BASE..TIP"),
        (["--range", "main..nowhere"], "git knows no commit nowhere: name one"),
        (["nothing"], "cannot read nothing (No such file or directory): name the file"),
    ],
)
def test_arguments_that_make_no_sense_are_one_sentence(
    check, published, arguments, words
):
    done = check(published, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
