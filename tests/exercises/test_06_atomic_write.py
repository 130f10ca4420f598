"""Checks of exercises/06_atomic_write.py.

A child process does the writing where it is to be killed or its disk to be full:
a limit on the size of files stops it at any byte, a profile at any of its calls.
"""

import json
import os
import random
import re
import resource
import signal
import stat
import sys
import traceback

import pytest
import torch

from grader import expect

# calls that can change what is on the disk; all others leave it as it is
STEPS = re.compile(
    "open|close|write|flush|fsync|fdatasync|sync|replace|rename|link|symlink|unlink|"
    "remove|truncate|ftruncate|copy_file_range|sendfile"
)


def state(number):
    """A snapshot of some kilobytes, a different one for each number."""
    generator = torch.Generator().manual_seed(number)
    return {
        "model": {"weight": torch.randn(40, 30, generator=generator)},
        "optimizer": {"momentum": torch.randn(40, 30, generator=generator)},
        "scheduler": {"last_epoch": number},  # whatever else a run may save
        "epochs_run": number,
    }


def in_child(action):
    """Run ``action`` in a child process; (signal that ended it or 0, its result).

    The result of one that raises is {"raised": what}.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = action()
        except BaseException as error:
            result = {"raised": f"{type(error).__name__}: {error}"[:200]}
        try:
            os.write(write_end, json.dumps(result).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status), json.loads(text) if text else None


def tells_why(error):
    """Whether it is the system's error or torch's, or says that it comes from it."""
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, OSError) or error.__cause__ or "/torch/" in where


def limit_files(size, kill):
    """No file of this process may grow beyond ``size``: death, or an error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if kill else signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def kill_at_step(number):
    """Kill this process before or after one of its calls to the file system."""
    left = [number]

    def profile(_, event, function):
        if event in ("c_call", "c_return") and STEPS.fullmatch(function.__name__):
            left[0] -= 1
            if left[0] < 0:
                signal.raise_signal(signal.SIGKILL)

    sys.setprofile(profile)


def expect_complete(path, numbers, when):
    """``path`` holds one of the snapshots with these numbers, complete."""
    expect.that(path.exists(), f"{when}, {path.name} is gone: nothing can be loaded")
    try:
        found = torch.load(path, weights_only=True)
        complete = found["epochs_run"] in numbers
    except Exception:
        complete = False
    expect.that(
        complete,
        f"{when}, {path.name} cannot be loaded: the old snapshot is lost and "
        "the new one is not complete",
    )
    expect.equal(found, state(found["epochs_run"]), f"the snapshot loaded {when}")


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


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
        expect.that(
            (folder / "snapshot.pt").exists(),
            f"after save {number + 1}, snapshot.pt is not there",
        )
        found = torch.load(folder / "snapshot.pt", weights_only=True)
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
            limit_files(length, kill=True)
            exercise.write_snapshot(state(2), path)

        ended, result = in_child(killed)
        when = f"after a kill at byte {length} of {size}"
        expect_complete(path, {1}, when)
        expect_killed(ended, result, signal.SIGXFSZ, when)


@pytest.mark.ranks(1, init=False, limit=30)
def test_killed_at_any_step(exercise, shared_dir, seed):
    """Killed before or after any call, the old or the new snapshot can be loaded."""
    folder = new_folder(shared_dir)
    path = folder / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    for step in range(2000):

        def killed(step=step):
            kill_at_step(step)
            exercise.write_snapshot(state(2 + step), path)

        before = torch.load(path, weights_only=True)["epochs_run"]
        ended, result = in_child(killed)
        if ended == 0 and result is None:
            break
        when = f"after a kill at call {step}"
        expect_killed(ended, result, signal.SIGKILL, when)
        expect_complete(path, {before, 2 + step}, when)
    expect.that(ended == 0, "write_snapshot did not finish")
    exercise.write_snapshot(state(1), path)
    left = names_in(folder)
    expect.that(
        left == ["snapshot.pt"],
        f"after {step} kills and one good save, {len(left)} files are in the folder "
        f"({', '.join(left[:3])}...): what killed saves leave behind must not pile up",
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
            limit_files(length, kill=False)
            try:
                exercise.write_snapshot(state(2), path)
            except Exception as error:
                return "raised" if tells_why(error) else "raised another error"
            return "returned as if nothing had gone wrong"

        ended, outcome = in_child(refused)
        when = f"with a disk that is full after {length} of {size} bytes"
        expect_complete(path, {1}, when)
        expect.that(
            not ended and outcome == "raised",
            f"{when}, write_snapshot "
            + (outcome if isinstance(outcome, str) else "ended the program")
            + ": let the error reach the caller",
        )
        expect.equal(names_in(folder), ["snapshot.pt"], f"the files left {when}")


def recorded_calls(exercise, path):
    """What a save did: ("sync file"|"sync folder"|"rename", inode, size, folder)."""
    calls = []

    def synced(original):
        def sync(descriptor):
            is_number = isinstance(descriptor, int)
            found = os.fstat(descriptor if is_number else descriptor.fileno())
            kind = "sync folder" if stat.S_ISDIR(found.st_mode) else "sync file"
            calls.append((kind, found.st_ino, found.st_size, ""))
            return original(descriptor)

        return sync

    def hook(event, arguments):
        if event == "os.rename" and str(arguments[1]) == str(path):
            found = os.stat(arguments[0])
            folder = os.path.dirname(os.path.abspath(arguments[0]))
            calls.append(("rename", found.st_ino, found.st_size, folder))

    os.fsync, os.fdatasync = synced(os.fsync), synced(os.fdatasync)
    sys.addaudithook(hook)
    exercise.write_snapshot(state(2), path)
    return calls


@pytest.mark.ranks(1, init=False)
def test_power_may_fail(exercise, shared_dir, seed):
    """The bytes are on the disk before the name is, and the name before the return."""
    path = new_folder(shared_dir) / "snapshot.pt"
    exercise.write_snapshot(state(1), path)
    _, calls = in_child(lambda: recorded_calls(exercise, path))
    expect.that(isinstance(calls, list), "write_snapshot failed the second time")
    renames = [i for i, call in enumerate(calls) if call[0] == "rename"]
    expect.right_way(
        len(renames) == 1,
        "snapshot.pt must get its new content by one os.replace of another file",
    )
    at = renames[0]
    _, inode, size, folder = calls[at]
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
    synced = before[-1][2]
    expect.right_way(
        synced == size,
        f"os.fsync flushed {synced} of {size} bytes to disk: it must come after "
        "torch.save and file.flush()",
    )
    after = [call[1] for call in calls[at:] if call[0] == "sync folder"]
    expect.right_way(
        after,
        "the folder was not synced after the rename: call sync_folder",
    )
    expect.right_way(
        path.parent.stat().st_ino in after,
        "the folder that was synced after the rename isn't that of path",
    )
