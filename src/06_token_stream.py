"""Read token files as one shuffled stream, over ranks and data workers; resume exactly.

    python src/06_write_tokens.py tokens
    python src/06_token_stream.py tokens
    torchrun --standalone --nproc-per-node=2 src/06_token_stream.py tokens
    ... src/06_token_stream.py tokens --steps 100 --position position.json

With --position, the next run continues where this one stopped, also with other numbers
of ranks and workers and with another batch size. Each window of an epoch is read once.
"""

import bisect
import itertools
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from common.distributed import (
    BadInput,
    Parser,
    log,
    one_line_errors,
    output_file,
    positive_int,
    write_json,
)
from common.process_group import join_or_alone

SEED = 0
END = 256  # the token after a document
IGNORED = -100  # a target that cross_entropy leaves out
TOKEN = np.dtype("<u2")  # as 06_write_tokens.py writes them
ALONE = "it reads every window"


@dataclass(frozen=True)
class Config:
    """The command line."""

    folder: Path  # of 06_write_tokens.py
    context: int  # tokens of a window
    batch_size: int  # windows per step, per rank
    buffer: int  # windows of the shuffle buffer
    epochs: int  # how many times to read all of it, in all
    workers: int  # processes that read for a rank; 0: itself
    steps: int | None  # stop after so many steps of an epoch
    drop_last: bool  # leave out the last step of an epoch if it is not a full one
    position: Path | None  # resume from it, and write it at the end
    record: Path | None  # folder for a line for each batch


class Batch(NamedTuple):
    """What one rank reads in a step; B can be 0 in the last step of an epoch."""

    worker: int  # which of this rank's workers has read it
    windows: torch.Tensor  # [B], their numbers
    inputs: torch.Tensor  # [B, T]
    targets: torch.Tensor  # [B, T]


# [start files]
class TokenFiles:
    """The windows of T tokens that a folder of token files has.

    Raises:
        BadInput: the folder has no complete token files.
    """

    def __init__(self, folder: Path, context: int):
        self.folder, self.context = folder, context
        self.shards = read_index(folder)
        counts = [-(-shard["tokens"] // context) for shard in self.shards]
        # of each shard, and at the end the number of all windows
        self.first_windows = [0, *itertools.accumulate(counts)]
        self.mapped: dict[int, np.memmap] = {}  # filled by the process that reads

    def __len__(self) -> int:
        return self.first_windows[-1]

    def windows_of(self, shard: int) -> range:
        return range(self.first_windows[shard], self.first_windows[shard + 1])

    def tokens(self, shard: int) -> np.memmap:
        """All tokens of a shard; the system reads only pages that are used."""
        if shard not in self.mapped:
            path = self.folder / f"{self.shards[shard]['name']}.tokens"
            self.mapped[shard] = np.memmap(path, dtype=TOKEN, mode="r")
        return self.mapped[shard]

    def window(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(inputs, targets) [T] each: its tokens, and the token after each of them.

        The last window of a shard is filled up with END, and with targets to ignore.
        """
        shard = bisect.bisect_right(self.first_windows, number) - 1
        start = (number - self.first_windows[shard]) * self.context
        piece = self.tokens(shard)[start : start + self.context + 1]  # [T + 1] or less
        inputs = np.full(self.context, END, dtype=np.int64)
        targets = np.full(self.context, IGNORED, dtype=np.int64)
        inputs[: len(piece)] = piece[: self.context]
        targets[: len(piece) - 1] = piece[1:]
        return inputs, targets


# [end files]
def read_index(folder: Path) -> list[dict]:
    """The shards of a folder: the name of each, its tokens and its documents."""
    write = f"write token files with python src/06_write_tokens.py {folder}"
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        for shard in index:
            size = (folder / f"{shard['name']}.tokens").stat().st_size
            if size != shard["tokens"] * TOKEN.itemsize:
                raise BadInput(
                    f"{shard['name']}.tokens in {folder} is cut off: {write}"
                )
    except OSError as error:
        raise BadInput(f"cannot read {error.filename}: {write}") from None
    except (ValueError, TypeError, KeyError):
        raise BadInput(f"{folder}/index.json is no index: {write}") from None
    return index


# [start shuffle]
def shuffled(
    items: Iterable[int], size: int, generator: random.Random
) -> Iterator[int]:
    """All of ``items``, in an order that keeps only ``size`` of them in memory."""
    buffer: list[int] = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            continue
        place = generator.randrange(size)
        yield buffer[place]
        buffer[place] = item
    generator.shuffle(buffer)
    yield from buffer


def order_of_epoch(files: TokenFiles, buffer_size: int, epoch: int) -> Iterator[int]:
    """The numbers of all windows: the same order in every process of every run."""
    generator = random.Random(f"seed {SEED}, epoch {epoch}")
    shards = list(range(len(files.shards)))
    generator.shuffle(shards)
    windows = itertools.chain.from_iterable(map(files.windows_of, shards))
    return shuffled(windows, buffer_size, generator)


# [end shuffle]
@dataclass(frozen=True)
class Position:
    """How far all ranks together have read: all that a resumed run needs to know."""

    epoch: int = 0
    windows: int = 0  # of this epoch, that the training steps have used


# [start stream]
class TokenStream(IterableDataset):
    """The batches of one rank, from a position to the end of its epoch."""

    def __init__(self, files: TokenFiles, config: Config, position: Position):
        self.files, self.position = files, position
        self.batch_size, self.buffer_size = config.batch_size, config.buffer
        self.drop_last = config.drop_last
        # here, not in __iter__: a worker that is not forked has no process group
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()  # None in the process of the rank itself
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        order = order_of_epoch(self.files, self.buffer_size, self.position.epoch)
        left = itertools.islice(order, self.position.windows, None)
        for step, windows in enumerate(in_steps(left, self.ranks * self.batch_size)):
            if self.drop_last and len(windows) < self.ranks * self.batch_size:
                return
            # the loader takes its batches from worker 0, 1, ..., 0, 1, ... in turn
            if step % workers == worker:
                yield self.read(worker, windows[self.rank :: self.ranks])

    def read(self, worker: int, windows: list[int]) -> Batch:
        """The only place where tokens are read: [B] -> [B, T]."""
        inputs = torch.empty(len(windows), self.files.context, dtype=torch.int64)
        targets = torch.empty_like(inputs)
        for row, number in enumerate(windows):
            pair = map(torch.from_numpy, self.files.window(number))
            inputs[row], targets[row] = pair
        return Batch(worker, torch.tensor(windows, dtype=torch.int64), inputs, targets)


def in_steps(windows: Iterator[int], count: int) -> Iterator[list[int]]:
    """``count`` windows for each step, fewer for the last one."""
    while True:
        of_step = list(itertools.islice(windows, count))
        if not of_step:
            return
        yield of_step


# [end stream]
# [start mask]
def document_mask(inputs: torch.Tensor) -> torch.Tensor:
    """Which keys a query may see, its own document's up to itself: [T] -> [T, T]."""
    ends = (inputs == END).long()
    document = ends.cumsum(0) - ends  # END still belongs to the document before it
    same = document[:, None] == document[None, :]
    return same.tril()


# [end mask]
class Counts:
    """What this rank has read of an epoch."""

    def __init__(self, files: TokenFiles):
        self.of_window = torch.zeros(len(files), dtype=torch.int64)
        self.steps = 0
        self.first: list[int] = []

    def add(self, batch: Batch) -> None:
        self.of_window[batch.windows] += 1
        self.first = self.first or batch.windows[:4].tolist()
        self.steps += 1

    def report(self, epoch: int, device: torch.device) -> None:
        """Print what each rank has read, and what all of them have; every rank."""
        first = ", ".join(map(str, self.first))
        line = f"{self.steps} steps, {int(self.of_window.sum()):,} windows: {first} ..."
        everyone = [""] * dist.get_world_size()
        dist.all_gather_object(everyone, line)  # every rank must reach this line
        for rank, said in enumerate(everyone):
            log(f"  rank {rank}: {said}")
        total = self.of_window.to(device)
        dist.all_reduce(total)  # every rank must reach this line: [windows] -> the same
        never, once = int((total == 0).sum()), int((total == 1).sum())
        again = int((total > 1).sum())
        log(f"Epoch {epoch}: {once:,} windows read once, {again} again, {never} not")


class Records:
    """A line for each batch in FOLDER/rankN.txt: epoch, step, worker, windows."""

    def __init__(self, folder: Path | None):
        self.file = None
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            self.file = (folder / f"rank{dist.get_rank()}.txt").open("a")

    def add(self, epoch: int, step: int, batch: Batch) -> None:
        if self.file:
            facts = [epoch, step, batch.worker, *batch.windows.tolist()]
            self.file.write(" ".join(map(str, facts)) + "\n")
            self.file.flush()


# [start read]
def read_epoch(
    files: TokenFiles,
    config: Config,
    position: Position,
    most_steps: int | None,
    counts: Counts,
    records: Records,
) -> Position:
    """Read to the end of the epoch, or for ``most_steps``; returns the new position."""
    stream = TokenStream(files, config, position)
    loader = DataLoader(stream, batch_size=None, num_workers=config.workers)
    for step, batch in enumerate(itertools.islice(loader, most_steps)):
        # a training step would be here
        counts.add(batch)
        records.add(position.epoch, step, batch)
    used = position.windows + counts.steps * stream.ranks * config.batch_size
    if counts.steps == most_steps and used < len(files):
        return replace(position, windows=used)
    return Position(position.epoch + 1)


# [end read]
def load_position(path: Path | None, settings: dict) -> Position:
    """The position in a file that rank 0 reads for all, if there is one; every rank."""
    found: list = [None]
    if path and dist.get_rank() == 0 and path.exists():
        try:
            found = [json.loads(path.read_text(encoding="utf-8"))]
        except (OSError, ValueError):
            found = ["damaged"]
    dist.broadcast_object_list(found)  # every rank must reach this line
    if found[0] is None:
        return Position()
    try:
        saved, position = found[0]["settings"], Position(**found[0]["position"])
    except (TypeError, KeyError):
        cure = "remove it to begin again, or name another"
        raise BadInput(f"{path} holds no position: {cure}") from None
    for name, value in settings.items():
        if saved.get(name) != value:
            was = f"{path} is of a stream with {name} {saved.get(name)}, not {value}"
            raise BadInput(f"{was}: its order is another, so name another --position")
    return position


def parse_arguments() -> Config:
    parser = Parser(__doc__)
    add, shown = parser.add_argument, " (default: %(default)s)"
    add("folder", metavar="FOLDER", type=Path, help="of 06_write_tokens.py")
    windows = {
        "--context": (1024, "tokens of a window"),
        "--batch-size": (8, "windows per step, per rank"),
        "--buffer": (512, "windows of the shuffle buffer"),
        "--epochs": (1, "how many times to read all of it, in all"),
    }
    for name, (default, words) in windows.items():
        add(name, type=positive_int, default=default, help=words + shown)
    several = "processes that read for a rank, 0: itself" + shown
    add("--workers", type=int, choices=range(65), default=2, metavar="W", help=several)
    add("--steps", type=positive_int, help="stop after so many steps of an epoch")
    even = "leave out the last step of an epoch if it is not a full one"
    add("--drop-last", action="store_true", help=even)
    stop = "resume from this file if it is there, and write it at the end"
    add("--position", metavar="FILE", type=output_file, help=stop)
    each = "append a line for each batch to FOLDER/rankN.txt"
    add("--record", metavar="FOLDER", type=Path, help=each)
    return Config(**vars(parser.parse_args()))


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    files = TokenFiles(config.folder, config.context)
    tokens = sum(shard["tokens"] for shard in files.shards)
    log(f"{tokens:,} tokens in {len(files.shards)} files: {len(files):,} windows")
    settings = {"context": config.context, "buffer": config.buffer, "tokens": tokens}
    position = load_position(config.position, settings)
    records = Records(config.record)
    if position.epoch >= config.epochs:
        log(f"Nothing to read: --epochs {config.epochs} is already read")
    while position.epoch < config.epochs:
        if position.windows:
            log(f"Epoch {position.epoch} continues after {position.windows:,} windows")
        epoch, counts = position.epoch, Counts(files)
        position = read_epoch(files, config, position, config.steps, counts, records)
        counts.report(epoch, device)
        state = {"settings": settings, "position": asdict(position)}
        write_json(config.position, state)
        if config.steps:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
