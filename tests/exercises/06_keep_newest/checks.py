"""Checks of exercises/06_keep_newest.py."""

import os
import random
import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect


def write(folder, *epochs):
    """Complete snapshots of these epochs, copied: the oldest has the newest file."""
    folder.mkdir(exist_ok=True)
    for epoch in epochs:
        snapshot = {"epoch": epoch, "model": {"weight": torch.full((50,), epoch)}}
        path = folder / f"snapshot_{epoch}.pt"
        torch.save(snapshot, path)
        os.utime(path, (1_700_000_000 - epoch,) * 2)
    return folder


def cut(folder, epoch, seed=0):
    """Truncate a snapshot, as a kill in the middle of writing it does."""
    path = folder / f"snapshot_{epoch}.pt"
    whole = path.read_bytes()
    path.write_bytes(whole[: random.Random(seed).randrange(len(whole))])


def names_in(folder):
    expect.that(folder.is_dir(), "the folder itself is gone, with all files in it")
    return sorted(path.name for path in folder.iterdir())


def numbered(*epochs):
    return sorted(f"snapshot_{epoch}.pt" for epoch in epochs)


@pytest.mark.ranks(1, init=False)
def test_newest_first_by_number(exercise, shared_dir):
    """Snapshots are listed newest first, by number: 10 is newer than 9."""
    folder = write(shared_dir / "folder", 8, 10, 9, 100)
    for age, epoch in enumerate((10, 8, 100, 9)):  # in no other order
        os.utime(folder / f"snapshot_{epoch}.pt", (1_700_000_000 - age,) * 2)
    found = list(exercise.complete_epochs(folder))
    what = "the epochs of four complete snapshots"
    for how, order in {
        "in the order of the files' times, and a copied file is new": [10, 8, 100, 9],
        "in the order of the files' times, oldest first": [9, 100, 8, 10],
        "oldest first": [8, 9, 10, 100],
        "in the order of their names' letters": [9, 8, 100, 10],
    }.items():
        told = f"{what} are {found}, {how}: sort them by number, newest first"
        expect.that(found != order, told)
    expect.equal(found, [100, 10, 9, 8], what)
    renamed = write(shared_dir / "renamed", 0, 3, 9)
    (renamed / "snapshot_9.pt").rename(renamed / "snapshot_4.pt")
    what = "the epochs of snapshots 0, 3 and 4, where the file of 4 says 9"
    expect.equal(list(exercise.complete_epochs(renamed)), [4, 3, 0], what)
    empty = shared_dir / "empty"
    empty.mkdir()
    found = list(exercise.complete_epochs(empty))
    expect.equal(found, [], "the epochs of an empty folder")


@pytest.mark.ranks(1, init=False)
def test_damaged_ones_do_not_count(exercise, shared_dir, seed):
    """A snapshot that is cut off, empty, a folder or something else is left out."""
    folder = write(shared_dir / "folder", 3, 5, 7, 8, 9, 11)
    cut(folder, 7, seed)
    (folder / "snapshot_8.pt").write_bytes(b"")
    torch.save(torch.ones(3), folder / "snapshot_9.pt")  # somebody else's tensor
    (folder / "snapshot_10.pt").mkdir()
    cut(folder, 11, seed + 1)
    before = names_in(folder)
    found = list(exercise.complete_epochs(folder))
    expect.equal(found, [5, 3], "the epochs that can be read, of 3, 5 and five others")
    expect.equal(names_in(folder), before, "the files after they were looked through")


@pytest.mark.ranks(1, init=False)
def test_other_files_are_no_snapshots(exercise, shared_dir):
    """Only files whose whole name is snapshot_NUMBER.pt count."""
    folder = write(shared_dir / "folder", 1, 2)
    newest = (folder / "snapshot_2.pt").read_bytes()
    for name in ("snapshot_4.pt.tmp", "old_snapshot_5.pt", "snapshot_best.pt"):
        (folder / name).write_bytes(newest)
    (folder / "notes.txt").write_text("learning rate 0.05 was better")
    write(folder / "of_another_run", 7)  # not in this folder
    found = list(exercise.complete_epochs(folder))
    expect.equal(found, [2, 1], "the epochs, beside four other files and a folder")


def same_epoch(found, epoch):
    """None is an answer, too: that there is no such epoch."""
    told = f"agree_on_newest returned None, but all ranks have epoch {epoch}, complete"
    expect.that(found is not None, told)
    expect.equal(found, epoch, "the epoch that all ranks resume from")


@pytest.mark.ranks(3, 4, limit=15)
def test_all_ranks_agree(exercise, rank, world_size, seed, shared_dir):
    """All ranks return the newest epoch of which every rank has a complete snapshot."""
    folder = write(shared_dir / f"disk_{rank}", *range(1, 15))
    cut(folder, 14, seed)
    if rank == 1:  # killed while it wrote 13, and once before that
        cut(folder, 13, seed)
        cut(folder, 7, seed)
    if rank == world_size - 1:  # its disk was full from 11 to 13
        for epoch in (11, 12, 13):
            cut(folder, epoch, seed + epoch)
    found = exercise.agree_on_newest(folder)
    same_epoch(found, 10)


@pytest.mark.ranks(3, 4, limit=15)
def test_not_the_smallest_of_the_newest(exercise, rank, seed, shared_dir):
    """The oldest of the ranks' newest epochs may be missing on another rank."""
    folder = write(shared_dir / f"disk_{rank}", 2, 3, 4, 5)
    if rank == 0:
        cut(folder, 4, seed)  # has 5, 3, 2
    if rank == 2:
        cut(folder, 5, seed)  # has 4, 3, 2
    found = exercise.agree_on_newest(folder)
    same_epoch(found, 3)


@pytest.mark.ranks(3, limit=15)
def test_however_many_are_kept(exercise, rank, seed, shared_dir):
    """One rank has 30 complete snapshots, and the others only the oldest two."""
    folder = write(shared_dir / f"disk_{rank}", *range(1, 31 if rank == 1 else 3))
    found = exercise.agree_on_newest(folder)
    same_epoch(found, 2)


@pytest.mark.ranks(3, limit=15)
def test_only_epoch_0_in_common(exercise, rank, seed, shared_dir):
    """The snapshot from before the first epoch is one, too: 0 isn't None."""
    folder = write(shared_dir / f"disk_{rank}", 0, rank + 1)
    found = exercise.agree_on_newest(folder)
    same_epoch(found, 0)


@pytest.mark.ranks(3, 4, limit=15)
def test_nothing_in_common(exercise, rank, seed, shared_dir):
    """Every rank returns None if one of them, late here, has no snapshot."""
    folder = write(shared_dir / f"disk_{rank}", 1, 2)
    if rank == 1:
        cut(folder, 1, seed)
        cut(folder, 2, seed)
        time.sleep(0.3)
    found = exercise.agree_on_newest(folder)
    expect.that(found is None, f"agree_on_newest must return None here, not {found!r}")
    dist.barrier()


@pytest.mark.ranks(1, init=False)
def test_old_ones_are_removed(exercise, shared_dir):
    """Of six complete snapshots the newest two stay; with few, nothing is removed."""
    folder = write(shared_dir / "folder", 6, 7, 8, 9, 10, 11)
    exercise.remove_old(folder, 2)
    expect.equal(names_in(folder), numbered(10, 11), "the files left, of 6 to 11")
    for keep in (2, 3, 5):  # [: 2 - 3] would be all but the last
        exercise.remove_old(folder, keep)
        what = f"the files left, keeping {keep} of 2"
        expect.equal(names_in(folder), numbered(10, 11), what)
    exercise.remove_old(folder, 0)
    expect.equal(names_in(folder), [], "the files left, keeping none of 2")


@pytest.mark.ranks(1, init=False)
def test_what_cannot_be_read_does_not_count_as_kept(exercise, shared_dir, seed):
    """Two complete snapshots stay, although the newest files are damaged."""
    folder = write(shared_dir / "folder", 1, 2, 3, 4, 5, 6)
    cut(folder, 3, seed)
    cut(folder, 5, seed)
    cut(folder, 6, seed)
    (folder / "notes.txt").write_text("keep me")
    exercise.remove_old(folder, 2)
    left = names_in(folder)
    for name in numbered(2, 4):
        expect.that(
            name in left,
            f"{name}, one of the two newest that are complete, was removed",
        )
    expect.that("snapshot_1.pt" not in left, "snapshot_1.pt is old and was not removed")
    expect.equal(left, ["notes.txt", *numbered(2, 3, 4, 5, 6)], "the files left")


@pytest.mark.ranks(1, init=False)
def test_files_with_similar_names_stay(exercise, shared_dir):
    """Only snapshots of old epochs are removed, not files with similar names."""
    folder = write(shared_dir / "folder", 1, 10, 11)
    others = "old_snapshot_1.pt", "snapshot_1.pt.tmp"
    for name in others:
        (folder / name).write_text("keep me")
    exercise.remove_old(folder, 2)
    expected = sorted([*others, *numbered(10, 11)])
    expect.equal(names_in(folder), expected, "the files left of 1, 10, 11 and others")
