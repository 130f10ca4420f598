"""``workshop capstone`` asks the scheduler for an accounting that is missing."""

import subprocess

import pytest

from tests.scripts.evidence_20_capstone import (
    ACCOUNTING,
    LAST,
    LOST,
    OF_PBS,
    OF_SACCT,
    command,
    gaps,
    two_runs,
    write,
)
from workshop.capstone import fetch
from workshop.capstone.fetch import fetch_missing

NAMED = OF_PBS.replace("    job_state", "    Job_Name = capstone\n    job_state")
FORMS = {"sacct": OF_SACCT + LAST, "scontrol": ACCOUNTING, "qstat": NAMED}


def without_accounting(tmp_path):
    """The folder of two right runs, and the runs themselves."""
    runs, folder = two_runs(), tmp_path / "capstone"
    write(folder, runs)
    for name in runs:
        (folder / name / "accounting.txt").unlink()
    return folder, {run.job: run for run in runs.values()}


def scheduler(runs, tells):
    """Answers as these commands of a cluster do; of others there is none."""

    def ask(words):
        *command, job = words
        run = runs[job]
        run.accounting = tells.get(command[0], "")
        if command[0] == "qstat":
            run.status = "0"
        if command[0] == "sacct" and run.restarts and run.accounting:
            assert "--duplicates" in command
            run.accounting = OF_SACCT + LOST + LAST
        return run.account()

    return ask


@pytest.mark.parametrize("command_name", FORMS)
def test_missing_accounting_is_asked_for_and_kept(command_name, tmp_path):
    folder, runs = without_accounting(tmp_path)
    ask = scheduler(runs, {command_name: FORMS[command_name]})
    told = fetch_missing(folder, [ask])
    assert told == [
        f"{run}/accounting.txt is new: {command_name}'s answer on {job}."
        for run, job in (("undisturbed", 7), ("disturbed", 8))
    ]
    assert gaps(folder) == {}


def test_accounting_that_is_there_stays(tmp_path):
    folder = write(tmp_path / "capstone", two_runs())
    before = (folder / "disturbed" / "accounting.txt").read_text()
    assert fetch_missing(folder, [lambda words: pytest.fail("asked")]) == []
    assert (folder / "disturbed" / "accounting.txt").read_text() == before


@pytest.mark.parametrize(
    "text",
    [
        ACCOUNTING.replace("{state}", "RUNNING"),
        ACCOUNTING.replace("JobName=capstone", "JobName=mine"),
        ACCOUNTING.replace("{job}", "9"),
        OF_SACCT,
        "",
    ],
    ids=["running", "another name", "another job", "no record", "nothing"],
)
def test_answer_that_is_not_of_an_ended_capstone_is_not_kept(text, tmp_path):
    folder, runs = without_accounting(tmp_path)
    assert fetch_missing(folder, [scheduler(runs, {"scontrol": text})]) == []
    assert not list(folder.glob("*/accounting.txt"))


def test_command_asks_this_machine_and_tells(tmp_path, monkeypatch):
    folder, runs = without_accounting(tmp_path)
    text = runs["7"].account()
    place = tmp_path / "bin" / "scontrol"
    place.parent.mkdir()
    place.write_text(f"#!/bin/sh\n[ $3 = 7 ] || exit 1\nprintf '%s' '{text}'\n")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.parent}:/usr/bin:/bin")
    monkeypatch.setenv("WORKSHOP_CLUSTER", str(tmp_path / "none"))
    done = command(folder)
    assert "undisturbed/accounting.txt is new: scontrol's answer on 7." in done.output
    assert "disturbed/accounting.txt is missing or empty" in done.output
    assert (folder / "undisturbed" / "accounting.txt").read_text() == text


def test_scheduler_that_does_not_answer_is_no_error(tmp_path, monkeypatch):
    def late(*_args, **_options):
        raise subprocess.TimeoutExpired("scontrol", 20)

    monkeypatch.setattr(fetch.subprocess, "run", late)
    monkeypatch.setattr(fetch.shutil, "which", lambda name: name)
    assert fetch.here(["scontrol", "show", "job", "7"]) == ""


def test_folder_without_runs_is_left_to_the_judge(tmp_path):
    assert fetch_missing(tmp_path) == []
