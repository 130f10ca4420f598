"""Checks of exercises/06_atomic_write.py.

A child process does the writing where it is to be killed or its disk to be full:
a limit on the size of files stops it at any byte, a profile at any of its calls.
"""

import errno
import os
import random
import signal
import stat
import sys
import threading
import traceback

import pytest
import torch

from workshop.grader import expect, kills

COPIED = (  # what survives a kill at any byte, and not one at any call
    ". Was it copied there? Only a rename within its folder is a single step"
)


def state(number, rows=40):
    """A snapshot of some kilobytes, a different one for each number."""
    generator = torch.Generator().manual_seed(number)
    return {
        "model": {"weight": torch.randn(rows, 30, generator=generator)},
        "optimizer": {"momentum": torch.randn(rows, 30, generator=generator)},
        "scheduler": {"last_epoch": number},  # whatever else a run may save
        "epochs_run": number,
    }


def tells_why(error):
    """Whether it is the system's error or torch's, or says that it comes from it."""
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, OSError) or error.__cause__ or "/torch/" in where


def expect_complete(path, numbers, when, why=""):
    """``path`` holds one of the snapshots with these numbers, complete."""
    expect.that(path.exists(), f"{when}, {path.name} is gone: nothing can be loaded")
    expect.that(
        loads(path),
        f"{when}, {path.name} cannot be loaded: the old snapshot is lost and "
        f"the new one is not complete{why}",
    )
    found = torch.load(path, weights_only=True)
    the_old = found["epochs_run"] in numbers
    expect.that(the_old, f"{when}, {path.name} is no longer the old snapshot")
    expect.equal(found, state(found["epochs_run"]), f"the snapshot loaded {when}")


def names_in(folder, newest=None):
    """The files of a folder, without one complete snapshot that is not the newest.

    The page keeps the previous one, too; half a file is never one.
    """
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        if name != "snapshot.pt" and loads(folder / name, newest):
            return [other for other in names if other != name]
    return names


def loads(path, but_for=None):
    try:
        return torch.load(path, weights_only=True)["epochs_run"] != but_for
    except Exception:
        return False


def new_folder(shared_dir):
    """A folder that holds only what write_snapshot leaves there."""
    folder = shared_dir / "snapshots"
    folder.mkdir()
    return folder


def expect_killed(ended, result, signal_number, when):
    """The save continued until it was killed, whatever other saves had left behind."""
    raised = result["raised"] if isinstance(result, dict) else "nothing"
    expect.that(
        ended == signal_number,
        f"{when}: the save before it was killed, and this one raised {raised}",
    )


@pytest.mark.ranks(1, init=False)
def test_the_newest_is_there(exercise, shared_dir, seed):
    """After three saves the third can be loaded, and nothing else is left."""
    folder = new_folder(shared_dir)
    for number in range(3):
        given = state(seed + number)
        exercise.write_snapshot(given, folder / "snapshot.pt")
        expect.equal(given, state(seed + number), "the caller's dict after the save")
        path, when = folder / "snapshot.pt", f"after save {number + 1}, snapshot.pt"
        expect.that(path.exists(), f"{when} is not there")
        expect.that(loads(path), f"{when} can't be loaded: bytes of it are missing")
        found = torch.load(path, weights_only=True)
        expect.equal(found, state(seed + number), "what the file holds")
    expect.equal(names_in(folder), ["snapshot.pt"], "the files in the folder")


@pytest.mark.ranks(1, init=False, limit=30)
def test_killed_at_any_byte(exercise, shared_dir, seed):
    """Killed while writing, at any byte, the old snapshot can be loaded."""
    path = new_folder(shared_dir) / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    size = path.stat().st_size
    some = random.Random(seed).sample(range(2, size - 1), 16)
    for length in [0, 1, *sorted(some), size - 1]:

        def killed(length=length):
            kills.limit_files(length, kill=True)
            exercise.write_snapshot(state(2), path)

        ended, result = kills.in_child(killed)
        when = f"after a kill at byte {length} of {size}"
        expect_complete(path, {1}, when)
        expect_killed(ended, result, signal.SIGXFSZ, when)
    exercise.write_snapshot(state(3, rows=2), path)
    expect.that(
        path.stat().st_size < size and loads(path),
        "a short snapshot, saved after a long one was killed, ends in bytes of the "
        'long one: open the temporary file with "wb", which empties it',
    )


@pytest.mark.ranks(1, init=False, limit=30)
def test_killed_at_any_step(exercise, shared_dir, seed):
    """Killed before or after any call, the old or the new snapshot can be loaded."""
    folder = new_folder(shared_dir)
    path = folder / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    for step in range(2000):

        def killed(step=step):
            kills.kill_at_step(step)
            exercise.write_snapshot(state(2 + step), path)

        before = torch.load(path, weights_only=True)["epochs_run"]
        ended, result = kills.in_child(killed)
        if ended == 0 and result is None:
            break
        when = f"after a kill at call {step}"
        expect_killed(ended, result, signal.SIGKILL, when)
        expect_complete(path, {before, 2 + step}, when, COPIED)
    expect.that(ended == 0, "write_snapshot did not finish")
    exercise.write_snapshot(state(1), path)
    left = names_in(folder)
    expect.that(
        left == ["snapshot.pt"],
        f"after {step} kills and one good save, {len(left)} files are in the folder "
        f"({', '.join(left[:3])}...): what killed saves leave behind must not pile up",
    )


@pytest.mark.ranks(1, init=False, limit=30)
def test_killed_in_the_first_save(exercise, shared_dir, seed):
    """Killed in the very first save, there is no file rather than half of one."""
    path = new_folder(shared_dir) / "snapshot.pt"
    for length in (0, 1000 + seed, 6000 + seed):

        def killed(length=length):
            kills.limit_files(length, kill=True)
            exercise.write_snapshot(state(2), path)

        kills.in_child(killed)
        expect.that(
            not path.exists(),
            f"after a kill at byte {length} of the first save, snapshot.pt is there "
            "and not complete: write the first one under another name, too",
        )


@pytest.mark.ranks(1, init=False, limit=30)
def test_a_full_disk(exercise, shared_dir, seed):
    """With a full disk: an error, the old snapshot, and no half-written file."""
    folder = new_folder(shared_dir)
    path = folder / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    size = path.stat().st_size

    for length in (0, size // 3, size - 1):

        def refused(length=length):
            kills.limit_files(length, kill=False)
            return what_is_raised(exercise, path)

        when = f"with a disk that is full after {length} of {size} bytes"
        expect_raised(kills.in_child(refused), path, when)


def what_is_raised(exercise, path):
    """What the caller sees of a save that can't succeed."""
    given = state(2)
    try:
        exercise.write_snapshot(given, path)
    except Exception as error:
        if list(given) != list(state(2)):
            return "left the caller's dict changed"
        return "raised" if tells_why(error) else "raised another error"
    return "returned as if nothing had gone wrong"


def expect_raised(ended_and_outcome, path, when):
    """The caller got the error and its dict, and the old snapshot is all there is."""
    ended, outcome = ended_and_outcome
    cures = {
        "left the caller's dict changed": "it belongs to the caller, also then",
        None: "let the error reach the caller",
    }
    said = outcome if isinstance(outcome, str) else "ended the program"
    expect.that(
        not ended and outcome == "raised",
        f"{when}, write_snapshot {said}: {cures.get(said, cures[None])}",
    )
    expect_complete(path, {1}, when)
    expect.equal(names_in(path.parent, 2), ["snapshot.pt"], f"the files left {when}")


def recorded_calls(exercise, path, snapshot):
    """What a save did: ("sync file"|"sync folder"|"rename", inode, size, folder)."""
    calls = []
    at_once, later = set(), set()  # files whose writes are on the disk, and others

    def synced(original):
        def sync(descriptor):
            is_number = isinstance(descriptor, int)
            found = os.fstat(descriptor if is_number else descriptor.fileno())
            kind = "sync folder" if stat.S_ISDIR(found.st_mode) else "sync file"
            calls.append((kind, found.st_ino, found.st_size, ""))
            return original(descriptor)

        return sync

    def hook(event, arguments):
        if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            opened(arguments[0], arguments[2] & (os.O_SYNC | os.O_DSYNC))
        if event == "os.rename" and str(arguments[1]) == str(path):
            found = os.stat(arguments[0])
            new = os.path.abspath(arguments[0])
            if new in at_once - later:
                calls.append(("sync file", found.st_ino, found.st_size, ""))
            folder = os.path.dirname(new)
            calls.append(("rename", found.st_ino, found.st_size, folder))

    def opened(name, with_sync):
        if isinstance(name, (str, os.PathLike)):
            (at_once if with_sync else later).add(os.path.abspath(name))

    def save(snapshot, file, *args, original=torch.save, **kwargs):
        opened(file, False)  # which torch does without Python
        original(snapshot, file, *args, **kwargs)

    def sync_all(original=os.sync):
        for place in (*path.parent.iterdir(), path.parent):
            found = place.stat()
            kind = "sync folder" if place == path.parent else "sync file"
            calls.append((kind, found.st_ino, found.st_size, ""))
        original()

    os.fsync, os.fdatasync = synced(os.fsync), synced(os.fdatasync)
    os.sync, torch.save = sync_all, save
    sys.addaudithook(hook)
    exercise.write_snapshot(snapshot, path)
    return calls


def expect_folder_synced(path, before, after):
    """The folder of ``path`` was synced after the rename, the first call of after."""
    folders = [call[1] for call in after if call[0] == "sync folder"]
    why = "call sync_folder"
    if any(call[0] == "sync folder" for call in before):
        why = "sync_folder was called before it, so call it after os.replace"
    elif any(call[0] == "sync file" for call in after):
        why = "what was synced is a file, so pass its folder, path.parent"
    expect.right_way(folders, f"the folder was not synced after the rename: {why}")
    expect.right_way(
        path.parent.stat().st_ino in folders,
        "the folder that was synced after the rename isn't that of path",
    )


@pytest.mark.ranks(1, init=False)
def test_power_may_fail(exercise, shared_dir, seed):
    """The bytes are on the disk before the name is, and the name before the return."""
    path = new_folder(shared_dir) / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    for rows in (40, 1):  # what Python's buffer can't hold, and what it can

        def saved(rows=rows):
            return recorded_calls(exercise, path, state(2, rows))

        _, calls = kills.in_child(saved)
        expect.that(isinstance(calls, list), "write_snapshot failed the second time")
        expect_on_disk(path, calls)


def expect_on_disk(path, calls):
    """In one save, the bytes came first, then the name, then the folder."""
    renames = [i for i, call in enumerate(calls) if call[0] == "rename"]
    expect.right_way(
        len(renames) == 1,
        "snapshot.pt must get its new content by one os.replace of another file",
    )
    at = renames[0]
    _, inode, _, folder = calls[at]
    expect.right_way(
        folder == str(path.parent),
        f"the new snapshot was written in the folder {folder}: across two disks, a "
        "rename is an error or a copy, so write it beside path",
    )
    before = [c for c in calls[:at] if c[0] == "sync file" and c[1] == inode]
    expect.right_way(
        before,
        "the file was renamed before os.fsync flushed it to disk: after a power "
        "failure the name may point to an empty file",
    )
    synced, size = before[-1][2], path.stat().st_size
    expect.right_way(
        synced == size,
        f"os.fsync flushed {synced} of {size} bytes to disk: it must come after "
        "the last write and file.flush()",
    )
    expect_folder_synced(path, calls[:at], calls[at:])


@pytest.mark.ranks(1, init=False)
def test_the_disk_refuses_at_the_end(exercise, shared_dir, seed):
    """An error of os.fsync, which is when some disks say that they are full."""
    path = new_folder(shared_dir) / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    asked = []

    def refused():
        os.fsync, os.fdatasync = (refusing(f, asked) for f in (os.fsync, os.fdatasync))
        outcome = what_is_raised(exercise, path)
        return outcome if asked else None

    result = kills.in_child(refused)
    if result != (0, None):  # which was never asked
        expect_raised(result, path, "with a disk that is full, as os.fsync says")


def refusing(sync, asked):
    """``sync``, which says of files, though not of folders, that the disk is full."""

    def full(descriptor):
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        if stat.S_ISDIR(os.fstat(number).st_mode):
            return sync(descriptor)
        asked.append(number)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return full


@pytest.mark.ranks(1, init=False)
def test_an_entry_that_cannot_be_pickled(exercise, shared_dir, seed):
    """An error that isn't the system's: the old snapshot, and no half-written file."""
    path = new_folder(shared_dir) / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    raised = False
    try:
        exercise.write_snapshot({**state(2), "lock": threading.Lock()}, path)
    except Exception:
        raised = True
    when = "with an entry that can't be pickled"
    told = f"{when}, write_snapshot returned as if nothing had gone wrong"
    expect.that(raised, told)
    expect_complete(path, {1}, when)
    expect.equal(names_in(path.parent, 2), ["snapshot.pt"], f"the files left {when}")
