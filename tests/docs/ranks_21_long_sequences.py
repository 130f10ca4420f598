"""What docs/lessons/21_long_sequences says of mistakes and of torch, in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence on the page. test_21_long_sequences_claims.py has them run.
"""

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.parallel import context_parallel as cp
from common.parallel.ring_attention import ring_attention

TOKENS = 24


@pytest.mark.ranks(2, 3, limit=30)
def test_torch_cuts_in_zigzag(rank, world_size, seed):
    """The tensors that you name are cut in zigzag, and restored at the end."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    mesh = init_device_mesh("cpu", (world_size,))
    positions, cut = torch.arange(TOKENS), cp.whole_world(zigzag=True)
    with context_parallel(mesh, buffers=[positions], buffer_seq_dims=[0]):
        own = positions.clone()
    expect.equal(own, cut.take(torch.arange(TOKENS), dim=0), "the positions inside")
    expect.equal(positions, torch.arange(TOKENS), "the positions afterwards")


@pytest.mark.ranks(2, limit=30)
def test_torch_has_no_attention_for_the_cpu(rank, world_size, seed):
    """In torch 2.13 it has no attention for the CPU."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    mesh = init_device_mesh("cpu", (world_size,))
    query, key, value = (torch.randn(2, 4, TOKENS, 8) for _ in range(3))

    def attend():
        buffers = [query, key, value]
        with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2]):
            F.scaled_dot_product_attention(query, key, value, is_causal=True)

    said = ""
    try:
        attend()
    except NotImplementedError as error:  # expect.raises takes it for a TODO
        said = str(error)
    expect.that("flash_attention_for_cpu" in said, f"torch says: {said!r}")
    expect.that("sharding strategy" in said, f"torch says: {said!r}")


@pytest.mark.ranks(3)
def test_gradients_of_own_queries_only(rank, world_size, seed):
    """Gradients of queries are right, those of keys and values aren't, if backward uses
    own queries only."""
    generator = torch.Generator().manual_seed(seed)
    shape = 4, 1, 2, TOKENS, 4
    *tensors, grad_out = torch.randn(shape, generator=generator, dtype=torch.float64)
    cut = cp.whole_world()
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    query, key, value = leaves
    out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    own = torch.zeros_like(grad_out)
    positions = cut.take(torch.arange(TOKENS), dim=0)
    own[:, :, positions] = grad_out[:, :, positions]  # only this rank's queries matter
    alone = torch.autograd.grad(out, leaves, own, retain_graph=True)
    right = torch.autograd.grad(out, leaves, grad_out)
    ours = [cut.take(tensor, dim=2).requires_grad_() for tensor in tensors]
    ring = ring_attention(ours[0], ours[1], ours[2], cut)
    grads = torch.autograd.grad(ring, ours, cut.take(grad_out, dim=2))
    for grad, wrong, whole in zip(grads, alone, right, strict=True):
        expect.close(grad, cut.take(whole, dim=2), "a gradient")
        same = torch.allclose(cut.take(wrong, dim=2), grad)
        # Later ranks' queries see this rank's keys; none is later than the last one.
        only_own_matter = wrong is alone[0] or rank == world_size - 1
        expect.equal(same, only_own_matter, "whether own queries are enough")
