"""06_write_tokens.py and 06_token_stream.py: what is written, and who reads it."""

import itertools
import json
import random
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.launched import TORCHRUN, finish, free_port, start
from tests.scripts.trainings import SRC, script, sentence, torchrun

sys.path.insert(0, str(SRC))
write_tokens = import_module("06_write_tokens")
token_stream = import_module("06_token_stream")

FULL = pytest.mark.full
NAME = "06_token_stream.py"
CONTEXT, BUFFER = 4096, 64
LONG = ["--context", CONTEXT, "--buffer", BUFFER]  # about 1,000 windows


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """Token files in shards of unequal lengths."""
    folder = tmp_path_factory.mktemp("written")
    done = script(folder, "06_write_tokens.py", "tokens")
    assert done.returncode == 0, done.stderr
    return folder / "tokens"


@pytest.fixture(scope="module")
def files(tokens):
    return token_stream.TokenFiles(tokens, CONTEXT)


def order_of(files, epoch=0):
    return list(token_stream.order_of_epoch(files, BUFFER, epoch))


def lines_of(folder):
    """(epoch, step, rank, worker, windows) of each batch that a run has recorded."""
    found = []
    for path in Path(folder).glob("rank*.txt"):
        rank = int(path.stem[4:])
        for line in path.read_text().splitlines():
            epoch, step, worker, *windows = map(int, line.split())
            found.append((epoch, step, rank, worker, windows))
    return sorted(found)


def windows_of(folder):
    """All windows that were read, in the order of the steps."""
    lines = lines_of(folder)
    return list(itertools.chain.from_iterable(line[-1] for line in lines))


def read(folder, ranks, tokens, *options):
    command = [SRC / NAME, tokens, *LONG, "--record", "read", *options]
    done = torchrun(folder, ranks, *command)
    assert done.returncode == 0, done.stderr
    return done


# What is written


def test_files_hold_every_document_with_its_end(tokens):
    index = json.loads((tokens / "index.json").read_text())
    found = []
    for shard in index:
        stored = np.fromfile(tokens / f"{shard['name']}.tokens", dtype="<u2")
        starts = np.fromfile(tokens / f"{shard['name']}.starts", dtype="<i8")
        assert (len(stored), len(starts)) == (shard["tokens"], shard["documents"] + 1)
        for first, end in itertools.pairwise(starts):
            assert stored[end - 1] == write_tokens.END
            found.append(stored[first : end - 1].astype(np.uint8).tobytes())
    assert len(index) > 3
    assert sorted(found) == sorted(write_tokens.documents())


def test_writing_again_gives_the_same_bytes_and_removes_no_other_file(tmp_path, tokens):
    (tmp_path / "notes.txt").write_text("kept")
    write_tokens.write_all(tmp_path, 500_000)
    for path in tokens.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert (tmp_path / "notes.txt").exists()


def test_packing_row_is_what_rows_of_documents_give(tmp_path):
    """Lengths 3, 9, 4 (END counted), rows of 4: counted by hand."""
    parts = [write_tokens.encode(b"a" * size) for size in (2, 8, 3)]
    index = [write_tokens.write_shard(tmp_path, "shard_000", parts)]
    row = write_tokens.packing_row(tmp_path, index, 4)
    # alone: 1 of 12 is padding, 5 of 16 cut off. Packed: 3|1, 4, 4, 4 tokens
    shares = [1 / 12, 5 / 16, 0, 1 - (6 + 1 + 10 + 10 + 10) / 40]
    assert row.split() == ["4", *(f"{share:.1%}" for share in shares)]


# Windows


def test_every_token_is_an_input_once_and_the_next_one_its_target(tokens, files):
    for shard, entry in enumerate(files.shards):
        stored = np.fromfile(tokens / f"{entry['name']}.tokens", dtype="<u2")
        pairs = [files.window(number) for number in files.windows_of(shard)]
        inputs = np.concatenate([one for one, _ in pairs])
        targets = np.concatenate([one for _, one in pairs])
        assert np.array_equal(inputs[: len(stored)], stored)
        assert (inputs[len(stored) :] == token_stream.END).all()
        assert np.array_equal(targets[: len(stored) - 1], stored[1:])
        assert (targets[len(stored) - 1 :] == token_stream.IGNORED).all()


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16])
def test_last_window_of_a_shard_is_filled_up(tmp_path, length):
    """With a shard of a token, of whole windows, and of one more."""
    parts = [write_tokens.encode(b"a" * (length - 1))]
    index = [write_tokens.write_shard(tmp_path, "shard_000", parts)]
    (tmp_path / "index.json").write_text(json.dumps(index))
    files = token_stream.TokenFiles(tmp_path, 8)
    assert len(files) == -(-length // 8)
    targets = np.concatenate([files.window(number)[1] for number in range(len(files))])
    assert (targets != token_stream.IGNORED).sum() == length - 1


# The order


@pytest.mark.parametrize(("count", "size"), [(100, 8), (5, 8), (8, 8), (0, 3), (40, 1)])
def test_shuffle_buffer_gives_each_item_once_and_reads_no_further(count, size):
    taken = []
    items = (taken.append(number) or number for number in range(count))
    given = []
    for item in token_stream.shuffled(items, size, random.Random(0)):
        given.append(item)
        assert len(taken) <= len(given) + size
    assert sorted(given) == list(range(count))
    assert (given == sorted(given)) is (size == 1 or count == 0)


def test_epochs_differ_and_an_epoch_is_the_same_in_every_process(files):
    code = (
        f"import sys; sys.path.insert(0, {str(SRC)!r})\n"
        "from importlib import import_module; from pathlib import Path\n"
        f"program = import_module('06_token_stream')\n"
        f"files = program.TokenFiles(Path({str(files.folder)!r}), {CONTEXT})\n"
        f"print(list(program.order_of_epoch(files, {BUFFER}, 1)))"
    )
    command = [sys.executable, "-c", code]
    done = finish(start(files.folder, command, PYTHONHASHSEED="5"))
    assert json.loads(done.stdout) == order_of(files, 1)
    assert sorted(order_of(files, 0)) == list(range(len(files)))
    assert order_of(files, 0) != order_of(files, 1)


# Who reads


def test_three_ranks_with_two_workers_read_each_window_once(tmp_path, tokens, files):
    done = read(tmp_path, 3, tokens, "--workers", 2, "--batch-size", 7)
    said = f"Epoch 0: {len(files):,} windows read once, 0 again, 0 not"
    assert said in done.stdout
    lines = lines_of(tmp_path / "read")
    assert all(worker == step % 2 for _, step, _, worker, _ in lines)
    order = order_of(files)
    by_step = itertools.groupby(lines, key=lambda line: line[1])
    for step, of_step in by_step:
        expected = order[step * 21 : step * 21 + 21]
        shares = [line[-1] for line in of_step]
        assert shares == [expected[rank::3] for rank in range(3)]
    assert len(lines) == 3 * -(-len(files) // 21)


@FULL
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_workers_change_nothing(tmp_path, tokens, files, workers):
    options = ["--workers", workers, "--batch-size", 7, "--steps", 9]
    read(tmp_path, 2, tokens, *options)
    order = order_of(files)[: 9 * 14]
    ranks = [[], []]
    for _, _, rank, _, windows in lines_of(tmp_path / "read"):
        ranks[rank] += windows
    steps = [order[first : first + 14] for first in range(0, len(order), 14)]
    for rank in range(2):
        own = [window for step in steps for window in step[rank::2]]
        assert ranks[rank] == own


@FULL
def test_stop_and_resume_with_another_world_reads_each_window_once(
    tmp_path, tokens, files
):
    where = ["--position", "position.json"]
    read(tmp_path, 4, tokens, "--steps", 11, "--batch-size", 3, *where)
    saved = json.loads((tmp_path / "position.json").read_text())
    assert saved["position"] == {"epoch": 0, "windows": 11 * 4 * 3}
    (tmp_path / "read").rename(tmp_path / "before")
    done = read(tmp_path, 3, tokens, "--workers", 1, "--batch-size", 5, *where)
    assert "Epoch 0 continues after 132 windows" in done.stdout
    before, after = windows_of(tmp_path / "before"), windows_of(tmp_path / "read")
    assert sorted(before + after) == list(range(len(files)))
    assert sorted(before) == sorted(order_of(files)[:132])
    done = read(tmp_path, 3, tokens, *where)
    assert "Nothing to read: --epochs 1 is already read" in done.stdout


@FULL
def test_resumed_run_reads_the_batches_of_an_uninterrupted_run(tmp_path, tokens):
    """Also across the end of an epoch, and stopped where another worker is next."""
    options = ["--batch-size", 30, "--workers", 2, "--epochs", 2]
    read(tmp_path, 3, tokens, *options)
    whole = lines_of(tmp_path / "read")
    (tmp_path / "read").rename(tmp_path / "whole")
    where = [*options, "--position", "position.json"]
    read(tmp_path, 3, tokens, *where, "--steps", 3)
    read(tmp_path, 3, tokens, *where)
    batches = [(rank, windows) for _, _, rank, _, windows in whole]
    parts = lines_of(tmp_path / "read")
    assert {line[0] for line in parts} == {0, 1}
    for rank in range(3):
        path = tmp_path / "read" / f"rank{rank}.txt"
        resumed = [line.split()[3:] for line in path.read_text().splitlines()]
        expected = [list(map(str, ws)) for reader, ws in batches if reader == rank]
        assert resumed == expected


@FULL
def test_drop_last_gives_all_ranks_full_batches_only(tmp_path, tokens, files):
    """A run that stops before the incomplete step resumes with the next epoch."""
    options = ["--batch-size", 7, "--drop-last", "--position", "position.json"]
    full_steps = len(files) // 21
    for _ in range(2):
        read(tmp_path, 3, tokens, *options, "--steps", full_steps)
    lines = lines_of(tmp_path / "read")
    assert {len(windows) for *_, windows in lines} == {7}
    assert len(lines) == 3 * full_steps
    saved = json.loads((tmp_path / "position.json").read_text())
    assert saved["position"] == {"epoch": 1, "windows": 0}


def test_two_nodes_read_each_window_once_and_resume(tmp_path, tokens, files):
    """2 nodes x 2 ranks x 2 workers; the position is on a disk that both nodes see.

    On a disk of their own it would not be found: each time torchrun's agents meet,
    either of them may get rank 0.
    """
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    position = tmp_path / "position.json"
    where = ["--position", position, "--record", "read", "--batch-size", 5]
    for steps in (["--steps", 7], []):
        options = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-id=test"]
        options += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
        program = [SRC / NAME, tokens, *LONG, *where, *steps]
        command = [*TORCHRUN, *options, "--local-addr=127.0.0.1", *program]
        agents = [start(folder, command) for folder in folders]
        done = [finish(agent) for agent in agents]
        assert [process.returncode for process in done] == [0, 0], done[0].stderr
    found = [window for folder in folders for window in windows_of(folder / "read")]
    assert sorted(found) == list(range(len(files)))
    readers = [line[2:4] for folder in folders for line in lines_of(folder / "read")]
    assert set(readers) == set(itertools.product(range(4), range(2)))
    saved = json.loads(position.read_text())["position"]
    assert saved == {"epoch": 1, "windows": 0}


# Documents in a window


def test_with_the_mask_a_packed_window_attends_as_its_documents_do_alone():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.tensor([5, 6, 7, token_stream.END, 8, token_stream.END, 9, 10, 11])
    shape = (3, len(inputs), 4)  # heads, tokens, width
    query, key, value = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    mask = token_stream.document_mask(inputs)
    packed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    for first, end in ((0, 4), (4, 6), (6, 9)):
        part = (tensor[:, first:end] for tensor in (query, key, value))
        alone = F.scaled_dot_product_attention(*part, is_causal=True)
        torch.testing.assert_close(packed[:, first:end], alone, rtol=0, atol=1e-12)


# Bad input


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "index.json").unlink(), "index.json: write token"),
        (
            lambda folder: (folder / "shard_000.tokens").write_bytes(b"abc"),
            "shard_000.tokens in spoiled is cut off: write token files",
        ),
        (
            lambda folder: (folder / "index.json").write_text("{"),
            "spoiled/index.json is no index: write token files",
        ),
    ],
)
def test_incomplete_token_files_are_one_sentence(tmp_path, spoil, words):
    folder = tmp_path / "spoiled"
    folder.mkdir()
    parts = [write_tokens.encode(b"abc")]
    index = [write_tokens.write_shard(folder, "shard_000", parts)]
    (folder / "index.json").write_text(json.dumps(index))
    spoil(folder)
    done = script(tmp_path, NAME, "spoiled")
    told = [line for line in done.stderr.splitlines() if f"{NAME}: error" in line]
    assert done.returncode == 2 and len(told) == 1
    assert words in told[0] and "Traceback" not in done.stderr


@FULL
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "position.json holds no position: remove it to begin again"),
        (
            json.dumps({"settings": {"context": 8}, "position": {}}),
            f"position.json is of a stream with context 8, not {CONTEXT}",
        ),
    ],
)
def test_position_of_another_stream_is_refused(tmp_path, tokens, text, words):
    (tmp_path / "position.json").write_text(text)
    done = script(tmp_path, NAME, tokens, *LONG, "--position", "position.json")
    assert words in sentence(done)


def test_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    done = script(tmp_path, "06_write_tokens.py", "file/tokens")
    assert "cannot write file/tokens" in sentence(done)
