"""Train a byte GPT whose sequences are cut over ranks, with context_parallel.

    torchrun --standalone --nproc-per-node=2 src/21_context_parallel.py 300 \\
        --context 256
    torchrun --standalone --nproc-per-node=4 src/21_context_parallel.py 300 \\
        --context 256

Several ranks need GPUs: PyTorch's context_parallel has no attention for the CPU. We
have had one GPU only, with one rank, which calls none of it. All ranks get the same
batch; 64 times their number must divide --context. PyTorch cuts as 21_ring_attention.py
does with --zigzag, so the losses should equal those of 13_train_gpt.py, up to rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

from common import gpt_training
from common.byte_gpt import ByteGPT, Embed, next_byte_loss
from common.distributed import BadInput, one_line_errors
from common.parallel import context_parallel as cp
from common.process_group import join_or_alone

ALONE = "it has all of every sequence, and PyTorch's context_parallel isn't called"
KERNEL = SDPBackend.EFFICIENT_ATTENTION  # takes float32; flash attention doesn't
# On a GPU, this kernel pads each chunk's log-sums to such a number, and PyTorch's ring
# merges them with outputs that aren't padded: pytorch/pytorch#179605
LSE_MULTIPLE = 32


class EmbedAtPlaces(Embed):
    """The embedding of tokens at positions that are a buffer, which can be cut."""

    def __init__(self, whole: Embed, context: int):
        nn.Module.__init__(self)
        self.byte, self.place = whole.byte, whole.place
        device = whole.place.weight.device
        self.register_buffer("positions", torch.arange(context, device=device))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.byte(tokens) + self.place(self.positions)


@contextmanager
def cut_sequences(
    mesh: DeviceMesh, model: ByteGPT, inputs: Tensor, targets: Tensor
) -> Iterator[None]:
    """Inside, inputs and targets are [B, T/c], and attention reaches all ranks.

    The tensors are cut in place and restored at the end. Inside, too:
    scaled_dot_product_attention passes keys and values round, and so does its backward.
    """
    if mesh.size() == 1:
        yield
        return
    cut = [inputs, targets, model.embed.positions]
    with (
        sdpa_kernel([KERNEL]),
        context_parallel(mesh, buffers=cut, buffer_seq_dims=[1, 1, 0]),
    ):
        yield


def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    mesh: DeviceMesh,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B, T], the same on all ranks; own mean loss."""
    optimizer.zero_grad()
    with cut_sequences(mesh, model, inputs, targets):
        loss = next_byte_loss(model(inputs), targets)
        loss.backward()
    cp.average_gradients(model, cp.whole_world())
    optimizer.step()
    return loss.detach()


def refuse_cpu(device: torch.device) -> None:
    """Before a run that would fail at its first attention.

    Raises:
        BadInput: there are several ranks, and they compute on the CPU.
    """
    if device.type == "cpu" and dist.get_world_size() > 1:
        raise BadInput(
            "PyTorch's context_parallel has no attention for the CPU: start it on "
            "GPUs, or do the same by hand, with src/21_ring_attention.py --zigzag"
        )


def build(
    config: gpt_training.TextConfig, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer, DeviceMesh]:
    """The model that one device would train, its optimizer, the mesh of all ranks."""
    ranks = dist.get_world_size()
    tokens = 1 if ranks == 1 else LSE_MULTIPLE * cp.CHUNKS_PER_RANK * ranks
    what = f"tokens: {LSE_MULTIPLE} for each of two chunks on a rank"
    gpt_training.check_divides(config.context, tokens, "--context", what)
    model = gpt_training.make_gpt(config, device)
    model.embed = EmbedAtPlaces(model.embed, config.context)
    mesh = init_device_mesh(device.type, (ranks,), mesh_dim_names=("context",))
    optimizer = gpt_training.make_optimizer(model.parameters(), config.learning_rate)
    return model, optimizer, mesh


@one_line_errors
def main() -> None:
    config = gpt_training.parse_text_training(__doc__, gpt_training.TextConfig)
    device = join_or_alone(ALONE)
    refuse_cpu(device)
    batches = gpt_training.Batches(config, device)
    model, optimizer, mesh = build(config, device)
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        loss = train_step(model, optimizer, mesh, inputs, targets)
        progress.note(step, loss / mesh.size())
    # Nothing is cut here: every rank scores whole sequences.
    progress.report(batches.test_loss(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    gpt_training.run_and_exit(main)
