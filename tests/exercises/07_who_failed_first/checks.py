"""Checks of exercises/07_who_failed_first.py: log folders as torchrun leaves them."""

import json
import os
import shutil

import pytest

from workshop.grader import expect

LOST = (
    "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:10141. This is typically caused by a remote worker crashing.",
    "RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection reset by peer",
    "RuntimeError: [/gloo/transport/tcp/buffer.cc:72] Timed out waiting 4000ms for "
    "recv operation to complete",
)
NOON = 1795261000  # seconds, as in the files


def error_file(folder, local_rank, second, message):
    """What ``@record`` writes into the folder of an attempt."""
    path = folder / str(local_rank) / "error.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    stack = f'Traceback (most recent call last):\n  File "train.py"\n{message}\n'
    extra = {"py_callstack": stack, "timestamp": str(second)}
    path.write_text(json.dumps({"message": {"message": message, "extraInfo": extra}}))
    return path


def logs(folder, said, nproc_per_node=3, attempts=(0, 0)):
    """Folders of the nodes; ``said``: rank -> (second after noon, message)."""
    nodes = []
    for node_rank, attempt in enumerate(attempts):
        node = folder / f"node{node_rank}"
        nodes.append(node)
        for local_rank in range(nproc_per_node):
            place = node / f"attempt_{attempt}" / str(local_rank)
            place.mkdir(parents=True, exist_ok=True)
            (place / "stderr.log").write_text("")
            rank = node_rank * nproc_per_node + local_rank
            if rank in said:
                second, message = said[rank]
                error_file(place.parent, local_rank, NOON + second, message)
    return nodes


def new_folder(shared_dir, name):
    folder = shared_dir / name
    folder.mkdir()
    return folder


@pytest.mark.ranks(1, init=False)
def test_read_one_file(exercise, shared_dir):
    """One file becomes the global rank, the second as a number, and the message."""
    message = "ValueError: 63 pixels\nof image 5"
    path = error_file(shared_dir, 2, NOON, message)
    found = exercise.read_failure(path, 5)
    expect.that(found is not None, "read_failure gave None for a complete file")
    expect.equal(found.rank, 5, "rank")
    expect.number(found.second, NOON, "second")
    expect.equal(found.message, message, "message")


@pytest.mark.ranks(1, init=False)
def test_file_that_says_nothing(exercise, shared_dir):
    """A file that is missing, empty, or cut off by a kill gives None."""
    missing = shared_dir / "7" / "error.json"
    found = exercise.read_failure(missing, 0)
    expect.equal(found, None, "read_failure of a missing file")
    path = error_file(shared_dir, 0, NOON, "ValueError: 63 pixels")
    whole = path.read_text()
    for length in (0, 1, 30, len(whole) - 1):
        path.write_text(whole[:length])
        what = f"read_failure of a file cut off after {length} of {len(whole)} bytes"
        expect.equal(exercise.read_failure(path, 0), None, what)
    text = whole.replace("63 pixels", "63 pixels, not « 64 »").encode()
    path.write_bytes(text[: text.index("«".encode()) + 1])
    what = "read_failure of a file cut off inside a letter of two bytes"
    expect.equal(exercise.read_failure(path, 0), None, what)


@pytest.mark.ranks(1, init=False)
def test_one_rank_failed_alone(exercise, shared_dir):
    """Only rank 4 left a file: local rank 1 of node 1."""
    folder = new_folder(shared_dir, "alone")
    nodes = logs(folder, {4: (0, "ValueError: 63 pixels")})
    expect.equal(exercise.suspects([*nodes], 3), [4], "the suspects")


@pytest.mark.ranks(1, init=False)
def test_earlier_of_two(exercise, shared_dir, seed):
    """Two ranks failed independently, rank 5 a second before rank 1."""
    folder = new_folder(shared_dir, "two")
    late, early = (seed + 9, "KeyError: 'label'"), (seed + 8, "MemoryError: ")
    nodes = logs(folder, {1: late, 5: early})
    expect.equal(exercise.suspects([*nodes], 3), [5], "the suspects")


@pytest.mark.ranks(1, init=False)
def test_consequences_in_the_same_second(exercise, shared_dir):
    """Rank 3 failed; the others only lost it, one of them with an earlier timestamp."""
    said = {rank: (7, LOST[rank % 3]) for rank in range(6)}
    said[3] = (7, "ValueError: 63 pixels")
    said[0] = (6, LOST[0])  # the clock of another machine
    nodes = logs(new_folder(shared_dir, "lost"), said)
    expect.equal(exercise.suspects([*nodes], 3), [3], "the suspects")


@pytest.mark.ranks(1, init=False)
def test_same_second(exercise, shared_dir):
    """Ranks 2 and 4 failed independently in the same second: both are suspects."""
    said = {rank: (7, LOST[0]) for rank in range(6)}
    said |= {4: (7, "KeyError: 'label'"), 2: (7, "ValueError: 63 pixels")}
    nodes = logs(new_folder(shared_dir, "same"), said)
    expect.equal(exercise.suspects([*nodes], 3), [2, 4], "the suspects")


@pytest.mark.ranks(1, init=False)
def test_killed_rank_is_silent(exercise, shared_dir):
    """There are only consequences, and rank 4 left no readable file: it was killed."""
    said = {rank: (7, LOST[rank % 3]) for rank in range(6) if rank != 4}
    nodes = logs(new_folder(shared_dir, "silent"), said)
    expect.equal(exercise.suspects([*nodes], 3), [4], "the suspects")
    (nodes[1] / "attempt_0" / "1" / "error.json").write_text('{"message": {"mess')
    expect.equal(exercise.suspects([*nodes], 3), [4], "the suspects, with half a file")
    (nodes[0] / "attempt_0" / "1" / "error.json").unlink()
    expect.equal(
        exercise.suspects([*nodes], 3), [1, 4], "the suspects, two being silent"
    )
    shutil.rmtree(nodes[0] / "attempt_0" / "1")
    what = "the suspects, rank 1 having not even a folder"
    expect.equal(exercise.suspects([*nodes], 3), [1, 4], what)
    error_file(nodes[1] / "attempt_0", 2, NOON + 8, "ValueError: 63 pixels")
    what = "the suspects, when rank 5 failed on its own"
    expect.equal(exercise.suspects([*nodes], 3), [5], what)


@pytest.mark.ranks(1, init=False)
def test_words_of_consequences_decide(exercise, shared_dir):
    """A broken pipe is a consequence; a connection that was refused is a cause."""
    said = {rank: (7, LOST[rank % 3]) for rank in range(6)}
    said |= {1: (6, "BrokenPipeError: [Errno 32] Broken pipe")}
    said |= {4: (8, "RuntimeError: Connection refused by the server of the images")}
    nodes = logs(new_folder(shared_dir, "words"), said)
    expect.equal(exercise.suspects([*nodes], 3), [4], "the suspects")


@pytest.mark.ranks(1, init=False)
def test_only_consequences(exercise, shared_dir):
    """Only the ranks without a file are suspects: five of them, or none."""
    nodes = logs(new_folder(shared_dir, "one"), {2: (7, LOST[0])})
    what = "the suspects, rank 2 alone having left a file"
    expect.equal(exercise.suspects([*nodes], 3), [0, 1, 3, 4, 5], what)
    said = {rank: (7, LOST[rank % 3]) for rank in range(6)}
    nodes = logs(new_folder(shared_dir, "all"), said)
    what = "the suspects, all ranks having only lost a partner"
    expect.equal(exercise.suspects([*nodes], 3), [], what)


@pytest.mark.ranks(1, init=False)
def test_nobody(exercise, shared_dir):
    """Without any file there is no suspect: the run may have succeeded."""
    nodes = logs(new_folder(shared_dir, "none_failed"), {})
    expect.equal(exercise.suspects([*nodes], 3), [], "the suspects")


@pytest.mark.ranks(1, init=False)
def test_newest_attempt(exercise, shared_dir):
    """Of eleven attempts, only the last one counts: attempt_10."""
    folder = new_folder(shared_dir, "attempts")
    for attempt in range(10):
        logs(folder, {0: (attempt, "KeyError: 'label'")}, 3, (attempt, attempt))
    nodes = logs(folder, {2: (99, "ValueError: 63 pixels")}, 3, (10, 10))
    later = 2 * NOON  # when the folder was last changed, as after a copy
    os.utime(nodes[0] / "attempt_4", (later, later))
    expect.equal(exercise.suspects([*nodes], 3), [2], "the suspects of attempt_10")
    (nodes[0] / "attempt_10" / "2" / "error.json").unlink()
    expect.equal(
        exercise.suspects([*nodes], 3), [], "the suspects of a good attempt_10"
    )


@pytest.mark.ranks(1, init=False)
def test_each_node_counts_its_own_attempts(exercise, shared_dir):
    """Each of three nodes, one of them new, has a newest attempt of its own."""
    folder = new_folder(shared_dir, "replaced")
    logs(folder, {1: (1, "KeyError: 'label'"), 4: (1, "MemoryError: ")}, 2, (0, 0, 0))
    for attempts in ((1, 0, 1), (1, 0, 2)):
        logs(folder, {}, 2, attempts)
    said = {rank: (9, LOST[rank % 3]) for rank in range(6)}
    said[3] = (9, "ValueError: 63 pixels, not « 64 »")
    nodes = logs(folder, said, 2, (2, 0, 3))
    expect.equal(exercise.suspects([*nodes], 2), [3], "the suspects")
    (nodes[1] / "attempt_0" / "1" / "error.json").unlink()
    expect.equal(
        exercise.suspects([*nodes], 2), [3], "the suspects, rank 3 being silent"
    )


@pytest.mark.ranks(1, init=False)
def test_order_of_many_suspects(exercise, shared_dir):
    """With 12 ranks on a node, suspect 2 comes before suspect 10."""
    said = {rank: (7, "ValueError: 63 pixels") for rank in (10, 2, 22)}
    nodes = logs(new_folder(shared_dir, "many"), said, nproc_per_node=12)
    expect.equal(exercise.suspects([*nodes], 12), [2, 10, 22], "the suspects")


@pytest.mark.ranks(1, init=False)
def test_node_that_never_started(exercise, shared_dir):
    """A node without any attempt: its ranks are silent."""
    folder = new_folder(shared_dir, "never")
    said = {rank: (7, LOST[rank % 3]) for rank in range(6)}
    nodes = logs(folder, said)
    shutil.rmtree(nodes[1] / "attempt_0")
    what = "the suspects, node 1 having no attempt"
    expect.equal(exercise.suspects([*nodes], 3), [3, 4, 5], what)
    error_file(nodes[0] / "attempt_0", 2, NOON + 8, "ValueError: 63 pixels")
    what = f"{what}, and rank 2 having failed on its own"
    expect.equal(exercise.suspects([*nodes], 3), [2], what)
