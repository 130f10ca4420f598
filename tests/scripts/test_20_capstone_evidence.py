"""``workshop capstone``: missing, edited or copied evidence gets no points."""

from __future__ import annotations

import shutil

import pytest

from tests.scripts.evidence_20_capstone import ROOT, command, gaps, two_runs, write
from workshop.capstone.judge import judge


def test_one_run_alone_is_judged_as_far_as_it_goes(tmp_path):
    runs = two_runs()
    del runs["disturbed"]
    found = gaps(write(tmp_path / "capstone", runs))
    assert set(found.values()) == {"There is no disturbed run yet."}


def test_no_evidence_is_bad_input(tmp_path):
    done = command(tmp_path)
    assert done.exit_code == 2
    assert "undisturbed/manifest.jsonl" in done.output + done.stderr


def change_line(folder, number, old, new):
    path = folder / "disturbed" / "manifest.jsonl"
    lines = path.read_text().splitlines()
    assert old in lines[number]
    lines[number] = lines[number].replace(old, new)
    path.write_text("\n".join(lines) + "\n")


def a_loss(folder):
    change_line(folder, 2, "4.9", "4.8")


def the_last_line(folder):
    change_line(folder, -1, "3.8", "3.7")


def a_line_taken_out(folder):
    path = folder / "disturbed" / "manifest.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3] + lines[4:]) + "\n")


def a_checkpoint_of_another_run(folder):
    for name in ("disturbed", "undisturbed"):
        shutil.rmtree(folder / name / "checkpoint-4")
    saved = folder / "disturbed" / "checkpoint-8"
    shutil.copytree(saved, folder / "disturbed" / "checkpoint-4")
    shutil.copytree(saved, folder / "undisturbed" / "checkpoint-4")


def no_checkpoint_any_more(folder):
    shutil.rmtree(folder / "disturbed" / "checkpoint-12")


def a_manifest_of_another_run(folder):
    source, target = (folder / name / "manifest.jsonl" for name in folder_names(folder))
    shutil.copy(source, target)


def the_same_run_twice(folder):
    source, target = (folder / name for name in folder_names(folder))
    shutil.rmtree(target)
    shutil.copytree(source, target)


def not_a_line(folder):
    change_line(folder, 1, '"numel": 100', '"numel": "many"')


def folder_names(folder):
    return sorted((path.name for path in folder.iterdir()), reverse=True)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (a_loss, "Line 3 of disturbed/manifest.jsonl was changed after the run"),
        (the_last_line, "disturbed/log.txt doesn't have the hash of the last line"),
        (a_line_taken_out, "lines are missing before line 4"),
        (a_checkpoint_of_another_run, "is not the file that the run has saved"),
        (no_checkpoint_any_more, "disturbed has no checkpoint-12/"),
        (a_manifest_of_another_run, "disturbed/log.txt doesn't have the hash"),
        (the_same_run_twice, "The two folders hold the same run, one of them copied"),
        (not_a_line, "Line 2 of disturbed/manifest.jsonl is not a line"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_edited_evidence_is_noticed_and_gets_no_points(edit, words, tmp_path):
    folder = write(tmp_path / "capstone", two_runs())
    edit(folder)
    judgment = judge(folder, ROOT)
    assert words in judgment.broken and judgment.points == 0
    done = command(folder)
    assert done.exit_code == 1 and words in done.output
    assert "Nothing is judged" in done.output


def test_resuming_from_other_files_than_were_saved_is_noticed(tmp_path):
    runs = two_runs()
    runs["disturbed"].of("start")[1]["resumed"] = {"__0_0.distcp": [1, "0" * 64]}
    judgment = judge(write(tmp_path / "capstone", runs), ROOT)
    assert "resumed from a checkpoint-4 with other files" in judgment.broken


def test_values_of_the_wrong_kind_are_one_sentence(tmp_path):
    runs = two_runs()
    runs["undisturbed"].of("memory")[0]["held"] = ["much"]
    judgment = judge(write(tmp_path / "capstone", runs), ROOT)
    assert "has values that the program doesn't write" in judgment.broken


def test_a_manifest_of_two_runs_is_noticed(tmp_path):
    runs = two_runs()
    runs["disturbed"].of("start")[1]["run"] = "c3"
    judgment = judge(write(tmp_path / "capstone", runs), ROOT)
    assert "is put together from different runs" in judgment.broken
