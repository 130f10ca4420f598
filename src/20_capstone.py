"""Train the byte GPT on a grid, and leave evidence of what ran: the capstone.

    torchrun --standalone --nproc-per-node=4 src/20_capstone.py 40 \\
        --checkpoints run --save-every 10 --async-save --mixed-precision

With ``--code exercises/20_capstone.py``, that file lays the model out, saves it and
resumes it. The folder gets checkpoints and ``manifest.jsonl``, which
`workshop capstone` reads: one line of JSON for each event, with the hash of the line
before it.
"""

import argparse
import importlib.util
import json
import os
import re
import socket
import uuid
import warnings
import zlib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from common import distributed, gpt_training
from common.byte_gpt import ByteGPT, next_byte_loss, sizes_of
from common.checkpoint import Checkpoints, check_folder, complete, fill
from common.distributed import BadInput, log, positive_int
from common.gpt_training import Batches, Progress, TextConfig
from common.manifest import Manifest, hashes
from common.parallel.mesh import Grid, make_mesh, plan_grid, split_blocks
from common.process_group import join_or_alone

ALONE = "nothing is divided, and nothing is sent"
TENSOR_RANKS = 2  # unless --tensor-ranks says otherwise
RECORD_EVERY = 5  # steps: at most so many are missing when a node is lost
OWN = "lay_out", "Saver", "resume"  # what a file given as --code defines


@dataclass(frozen=True)
class Config(TextConfig):
    """The command line; the same on all ranks."""

    checkpoints: Path
    plan: Path | None
    tensor_ranks: int | None
    code: Path | None
    mixed_precision: bool
    save_every: int | None  # steps; None saves nothing
    async_save: bool


def describe(config: Config, grid: Grid, manifest: Manifest) -> dict:
    """Who trains, how, and by which code; every rank calls this."""
    hosts = [""] * dist.get_world_size()
    dist.all_gather_object(hosts, socket.gethostname())  # every rank, once
    # the checks of the exercise see to it that --code saves in the background
    in_background = config.async_save or config.code is not None
    before = json.loads(manifest.lines[0]) if manifest.lines else {}
    plan = config.plan.read_text("utf-8") if config.plan else ""
    sizes = vars(sizes_of(config))
    return {
        "run": before.get("run") or uuid.uuid4().hex,
        "job": os.environ.get("SLURM_JOB_ID") or os.environ.get("PBS_JOBID", ""),
        "plan": {n: int(v) for n, v in re.findall(r"(?m)^(\w+) *= *([\d_]+)", plan)},
        "hosts": hosts,
        "grid": {"data": grid.data, "tensor": grid.tensor},
        "save": {"every": config.save_every or 0, "background": in_background},
        "sizes": sizes | {"batch": config.batch_size, "steps": config.steps},
        "code": manifest.code(),
        "own": own_file(config.code),
    }


def own_file(path: Path | None) -> dict[str, str]:
    """The file whose code lays out, saves and resumes; {} if it is this program's."""
    if path is None:
        return {}
    return {"file": str(path), "sha256": sha256(path.read_bytes()).hexdigest()}


def policies(mixed: bool) -> tuple[MixedPrecisionPolicy, MixedPrecisionPolicy]:
    """How the blocks compute, and how the root does, whose output the loss needs."""
    if not mixed:
        return MixedPrecisionPolicy(), MixedPrecisionPolicy()
    low = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
    root = MixedPrecisionPolicy(**low, output_dtype=torch.float32)
    return MixedPrecisionPolicy(**low), root


def shard(
    model: ByteGPT, grid: Grid, mixed_precision: bool, device: torch.device
) -> DeviceMesh:
    """Leave this rank its part of the model: first its columns, then its shard."""
    policy, root_policy = policies(mixed_precision)
    mesh = make_mesh(grid, device)
    if grid.tensor > 1:
        split_blocks(model, mesh["tensor"])
    for block in model.blocks:
        fully_shard(block, mesh=mesh["data"], mp_policy=policy)
    fully_shard(model, mesh=mesh["data"], mp_policy=root_policy)
    return mesh


def load_code(path: Path) -> ModuleType:
    """The file given as --code, as a module.

    Raises:
        BadInput: it can't be loaded, or lacks what the program needs of it.
    """
    spec = importlib.util.spec_from_file_location("own_code", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"--code {path} is no Python file: name one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError) as error:
        raise BadInput(f"--code {path} can't be loaded ({error}): repair it") from error
    for name in OWN:
        if not hasattr(module, name):
            raise BadInput(f"--code {path} has no {name}: write it there")
    return module


class OwnCheckpoints:
    """Saves and resumes by the code of --code, and keeps account of what is complete.

    It has the methods of ``Checkpoints``.
    """

    not_saved = ""  # a save that fails ends the run

    def __init__(self, code: ModuleType, config: Config, model, optimizer):
        self.code, self.folder = code, config.checkpoints
        self.model, self.optimizer = model, optimizer
        every = config.save_every or config.steps + 1  # or never
        self.saver = code.Saver(self.folder, every, model, optimizer)
        self.known = set(complete(self.folder))
        self.saved: list[Path] = []  # what this process has saved; may be emptied

    def load_newest(self) -> int:
        steps_run = self.code.resume(self.folder, self.model, self.optimizer)
        if steps_run:
            log(f"Resuming from {self.folder}/checkpoint-{steps_run}")
        return steps_run

    def after_step(self, steps_run: int) -> None:
        self.saver.after_step(steps_run)
        self.look()

    def wait(self) -> None:
        self.saver.finish()
        self.look()

    def look(self) -> None:
        """Take note of folders that have got their name."""
        if not distributed.is_rank_0():
            return
        for steps, path in complete(self.folder).items():
            if steps not in self.known:
                self.known.add(steps)
                self.saved.append(path)
                log(f"Saved {path}")


def divide(
    model: ByteGPT,
    grid: Grid,
    config: Config,
    device: torch.device,
    code: ModuleType | None,
) -> DeviceMesh:
    """Divide the model by this program's code, or by that of --code; its mesh.

    Raises:
        BadInput: the mesh of --code is not the grid that the options ask for.
    """
    if code is None:
        return shard(model, grid, config.mixed_precision, device)
    both = policies(config.mixed_precision)
    mesh = code.lay_out(model, grid.tensor, *both, device)
    try:
        found = {axis: mesh[axis].size() for axis in ("data", "tensor")}
    except (TypeError, KeyError, RuntimeError) as error:
        raise BadInput(
            f"lay_out of --code {config.code} returned no mesh with the axes data and "
            "tensor: return the one that it made"
        ) from error
    asked = {"data": grid.data, "tensor": grid.tensor}
    if found != asked:
        raise BadInput(
            f"lay_out of --code {config.code} made a mesh of {found}, and the options "
            f"ask for {asked}: use tensor_ranks"
        )
    return mesh


def train_step(model, optimizer, inputs, targets) -> torch.Tensor:
    """One step on this rank's pieces, [B, T] each; their mean loss."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()


def held_bytes(model: ByteGPT, optimizer: torch.optim.Optimizer) -> list[int]:
    """Bytes of parameters, gradients and optimizer state, rank by rank."""
    tensors = [tensor for p in model.parameters() for tensor in (p, p.grad)]
    tensors += [s[n] for s in optimizer.state.values() for n in s if s[n].dim()]
    own = [t.to_local() if isinstance(t, DTensor) else t for t in tensors]
    held: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(held, sum(t.nbytes for t in own))  # every rank, once
    return held


@dataclass
class Run:
    """A training run, and where its evidence goes."""

    config: Config
    grid: Grid
    mesh: DeviceMesh
    batches: Batches
    progress: Progress
    model: ByteGPT
    optimizer: torch.optim.Optimizer
    checkpoints: Checkpoints | OwnCheckpoints
    manifest: Manifest

    def train(self, first: int) -> None:
        """The steps from ``first`` on, and a line of the manifest for what they did."""
        pieces = []  # [B, T] of each step that is not yet recorded
        dtypes = self.watch_dtypes()
        for step in self.progress.steps(first):
            batch = self.batches.of_step(step)
            inputs, targets = (self.own_part(tokens) for tokens in batch)
            pieces.append(batch[0])
            loss = train_step(self.model, self.optimizer, inputs, targets)
            if step == first:
                self.record_memory(dtypes)
            # ranks of one tensor group have the same loss
            self.progress.note(step, loss / dist.get_world_size())
            if step % RECORD_EVERY == 0 or step == self.config.steps - 1:
                self.record_steps(step, pieces)
                pieces = []
            self.save_if_due(step + 1)
            self.manifest.add_checkpoints(self.checkpoints.saved)

    def save_if_due(self, steps_run: int) -> None:
        """Every rank calls this after each step."""
        if isinstance(self.checkpoints, OwnCheckpoints):
            self.checkpoints.after_step(steps_run)  # it knows itself what is due
            return
        every = self.config.save_every
        if every and steps_run % every == 0:
            self.checkpoints.save(steps_run, background=self.config.async_save)
        self.checkpoints.look()

    def own_part(self, tokens: torch.Tensor) -> torch.Tensor:
        """This rank's pieces of the global batch: [B, T] -> [B / d, T]."""
        part = self.mesh["data"].get_local_rank()
        return tokens.chunk(self.grid.data)[part].clone()

    def watch_dtypes(self) -> set[str]:
        """In which types the MLP of the first block computes, as soon as it has."""
        dtypes: set[str] = set()

        def note(_mlp, _inputs, output: torch.Tensor) -> None:
            dtypes.add(str(output.dtype))

        self.model.blocks[0].mlp.register_forward_hook(note)
        return dtypes

    def record_memory(self, dtypes: set[str]) -> None:
        """What each rank holds after a step; every rank calls this."""
        numel = sum(parameter.numel() for parameter in self.model.parameters())
        held = held_bytes(self.model, self.optimizer)
        self.manifest.add("memory", held=held, numel=numel, dtypes=[*dtypes])

    def record_steps(self, step: int, pieces: list[torch.Tensor]) -> None:
        """Losses and checksums of the pieces [B, T] of the last steps, up to this."""
        losses = self.progress.losses[-len(pieces) :]
        begun = step + 1 - len(pieces)
        sums = [zlib.crc32(bytes(piece.flatten().tolist())) for piece in pieces]
        self.manifest.add("steps", first=begun, losses=losses, data=sums)


def start_run(config: Config, device: torch.device) -> tuple[Run, int]:
    """The run, resumed from the newest checkpoint, and its first step; every rank."""
    gpt_training.show_config(config)
    ranks = dist.get_world_size()
    grid = plan_grid(ranks, 1, config.tensor_ranks or min(TENSOR_RANKS, ranks))
    gpt_training.check_divides(
        config.batch_size, grid.data, "--batch-size", "data ranks"
    )
    log(f"Grid: {grid}")
    batches = Batches(config, device)
    progress = Progress(config, batches.entropy, say_every=RECORD_EVERY)
    with torch.device("meta"):  # shapes, and no memory for the numbers
        model = gpt_training.make_gpt(config, device)
    code = load_code(config.code) if config.code else None
    mesh = divide(model, grid, config, device, code)
    fill(model, device, gpt_training.SEED)
    optimizer = gpt_training.make_optimizer(model.parameters(), config.learning_rate)
    if code:
        checkpoints = OwnCheckpoints(code, config, model, optimizer)
    else:
        sizes = sizes_of(config)
        checkpoints = Checkpoints(config.checkpoints, model, optimizer, sizes)
    manifest = Manifest(config.checkpoints / "manifest.jsonl")
    run = Run(
        config, grid, mesh, batches, progress, model, optimizer, checkpoints, manifest
    )
    return run, resume(run)


def resume(run: Run) -> int:
    """Load the newest checkpoint, if there is one; the first step of this run."""
    facts = describe(run.config, run.grid, run.manifest)
    first = run.checkpoints.load_newest()
    resumed = {}
    if first and distributed.is_rank_0():
        resumed = hashes(run.config.checkpoints / f"checkpoint-{first}")
    run.manifest.add("start", **facts, first=first, resumed=resumed)
    return first


def train(config: Config, device: torch.device) -> str:
    """Train and print; returns why the last checkpoint is not saved, or ""."""
    run, first = start_run(config, device)
    run.train(first)
    run.checkpoints.wait()
    run.manifest.add_checkpoints(run.checkpoints.saved, wait=True)
    test_loss = run.batches.test_loss(run.model)  # every rank scores all pieces
    run.manifest.add("end", steps=config.steps, test_loss=test_loss)
    run.progress.report(test_loss)
    log(f"Manifest sealed: {run.manifest.seal()}")
    return run.checkpoints.not_saved


def add_options(parser: argparse.ArgumentParser) -> None:
    add, switch = parser.add_argument, {"action": "store_true"}
    folder = "of checkpoints and manifest; resumed from the newest complete one"
    add("--checkpoints", metavar="FOLDER", type=Path, required=True, help=folder)
    add("--plan", metavar="FILE", type=Path, help="copied into the manifest")
    default = f"(default: {TENSOR_RANKS}, or 1 for a single rank)"
    tensor = f"ranks that share each block's columns and rows {default}"
    add("--tensor-ranks", metavar="N", type=positive_int, help=tensor)
    own = "lay out, save and resume by the code of this file (exercises/20_capstone.py)"
    add("--code", metavar="FILE", type=Path, help=own)
    low = "compute in bfloat16; shards and reductions stay in float32"
    add("--mixed-precision", **switch, help=low)
    every = "steps between two checkpoints (default: none is saved)"
    add("--save-every", metavar="STEPS", type=positive_int, help=every)
    add("--async-save", **switch, help="continue while a checkpoint is written")


def read_config() -> Config:
    """The command line, and whether the files that it names are there.

    Raises:
        BadInput: one is not; or rank 0 can't write into --checkpoints.
    """
    config = gpt_training.parse_text_training(__doc__, Config, add_options)
    if config.plan and not config.plan.is_file():
        raise BadInput(f"there is no file --plan {config.plan}: write the plan first")
    if config.code and not config.code.is_file():
        raise BadInput(f"there is no file --code {config.code}: name your exercise")
    if distributed.is_rank_0():
        check_folder(config.checkpoints, "--checkpoints")
    return config


@distributed.one_line_errors
def main() -> None:
    # The loss does nothing in place to the scores, which is what this warns of.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
    config = read_config()
    # every rank must reach this line
    device = join_or_alone(ALONE, timeout=None, announce=False)
    try:
        not_saved = train(config, device)
    except NotImplementedError as error:
        if not config.code:
            raise
        raise BadInput(
            f"--code {config.code} isn't finished ({error}): fill it in, and run "
            "workshop check 20_capstone"
        ) from error
    dist.destroy_process_group()
    if not_saved:
        raise BadInput(not_saved)


if __name__ == "__main__":
    gpt_training.run_and_exit(main)
