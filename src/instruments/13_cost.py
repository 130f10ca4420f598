"""Count what one device or each rank of a pipeline holds and sends in a step.

    python src/instruments/13_cost.py src/13_train_gpt.py 300
    torchrun --standalone --nproc-per-node=3 src/instruments/13_cost.py \\
        src/13_pipeline_by_hand.py 100 --schedule gpipe
    torchrun --standalone --nproc-per-node=2 src/instruments/13_cost.py \\
        src/13_pipeline.py 100 --schedule interleaved

It runs one step of the program and prints what each rank counted beside the formulas.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.byte_gpt import BYTES, Sizes, sizes_of
from common.cost.counting import (
    FLOAT32,
    activations,
    block_activations,
    block_parameters,
    compare,
    embed_parameters,
    head_parameters,
    load_program,
    model_parameters,
    model_states,
)
from common.cost.measure import count_step
from common.distributed import choose_device, log, one_line_errors
from common.parallel.pipeline import SCHEDULES, PipelineOptions, most_live
from common.process_group import join_or_alone, refuse_messages_between_shared

ALONE = "the pipeline is one stage, the whole model, and sends nothing"


def blocks_in(sizes: Sizes, span: range) -> int:
    """How many of the layers ``span`` are blocks."""
    return sum(0 < number <= sizes.blocks for number in span)


def stage_parameters(sizes: Sizes, span: range) -> int:
    """Numbers in the parameters of the layers ``span``."""
    embed = embed_parameters(sizes) if 0 in span else 0
    head = head_parameters(sizes) if sizes.blocks + 1 in span else 0
    return embed + blocks_in(sizes, span) * block_parameters(sizes) + head


def stage_activations(
    sizes: Sizes, span: range, live_pieces: int, live: int, batch_size: int
) -> int:
    """Bytes that a stage holds for backward, of ``live`` micro-batches.

    These have ``live_pieces`` pieces of text together. The integers belong to the
    global batch of ``batch_size`` pieces, and the micro-batches are views of it.
    """
    tokens = live_pieces * sizes.context
    numel = blocks_in(sizes, span) * block_activations(sizes, tokens)
    integers = 0
    if 0 in span:
        integers += batch_size * sizes.context + live * sizes.context
    if sizes.blocks + 1 in span:
        numel += (2 * sizes.width + 2 + BYTES) * tokens + live
        integers += batch_size * sizes.context
    return FLOAT32 * numel + 8 * integers


def peak_activations(
    sizes: Sizes,
    spans: Sequence[range],
    order: Iterable[tuple[str, int]],
    batch_size: int,
    micro_batches: int,
) -> int:
    """The most bytes saved for backward by a rank that runs ``order``, parts equal."""
    pieces = batch_size // micro_batches
    live, most = [0] * len(spans), 0
    for what, own in order:
        live[own] += 1 if what == "forward" else -1
        held = sum(
            stage_activations(sizes, span, count * pieces, count, batch_size)
            for span, count in zip(spans, live, strict=True)
            if count
        )
        most = max(most, held)
    return most


def boundary_bytes(sizes: Sizes, pieces: int) -> int:
    """Bytes that cross one boundary in one direction: [B, T, width] numbers."""
    return FLOAT32 * pieces * sizes.context * sizes.width


def order_of(pipeline, config: PipelineOptions) -> list[tuple[str, int]]:
    """("forward" or "backward", which of this rank's stages) in 13_pipeline.py."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if config.schedule in SCHEDULES:
        schedule = SCHEDULES[config.schedule]
        return [(what, 0) for what, _ in schedule(rank, ranks, config.micro_batches)]
    names = {"FORWARD": "forward", "FULL_BACKWARD": "backward"}
    return [
        (names[action.computation_type.name], action.stage_index // ranks)
        for action in pipeline.schedule.pipeline_order[rank]
        if action is not None and action.computation_type.name in names
    ]


def name_layers(span: range, layers: int) -> str:
    """``embedding, blocks 1 to 2``: the layers of a stage in words."""
    blocks = [number for number in span if 0 < number < layers - 1]
    parts = ["embedding"] if 0 in span else []
    if len(blocks) > 1:
        parts.append(f"blocks {blocks[0]} to {blocks[-1]}")
    elif blocks:
        parts.append(f"block {blocks[0]}")
    if layers - 1 in span:
        parts.append("head")
    return ", ".join(parts)


def count_alone(program: SimpleNamespace, config, device: torch.device) -> str:
    """The table of one device."""
    sizes, batch = sizes_of(config), program.Batches(config, device).of_step(0)
    both = program.build(config, device)
    counted = count_step(*both, lambda: program.train_step(*both, *batch))
    formula = model_states(model_parameters(sizes))
    formula["activations"] = activations(sizes, config.batch_size)
    return compare(counted, formula, "bytes on one device")


def count_stages(program: SimpleNamespace, config, device: torch.device) -> str:
    """A table for each rank; all ranks call this together."""
    inputs, targets = program.Batches(config, device).of_step(0)
    pipeline, spans = program.build(config, device)
    spans = [spans] if isinstance(spans, range) else spans
    parameters, rate = pipeline.stage.parameters(), config.learning_rate
    optimizer = program.make_optimizer(parameters, rate)

    def step() -> None:
        program.train_step(pipeline, optimizer, inputs, targets)

    step()  # the first one also sends shapes
    measured = count_step(pipeline.stage, optimizer, step, "send")
    sizes, size = sizes_of(config), len(inputs)
    if program.path.name == "13_pipeline.py":
        order, m = order_of(pipeline, config), config.micro_batches
        saved = peak_activations(sizes, spans, order, size, m)
    else:
        live = most_live(pipeline.order)
        pieces = sum(map(len, pipeline.inputs[:live]))
        saved = stage_activations(sizes, spans[0], pieces, live, size)
    ends = sum((0 in span) + (sizes.blocks + 1 in span) for span in spans)
    formula = {
        **model_states(sum(stage_parameters(sizes, span) for span in spans)),
        "activations": saved,
        "sent in a step": (2 * len(spans) - ends) * boundary_bytes(sizes, size),
    }
    layers = "; ".join(name_layers(span, sizes.blocks + 2) for span in spans)
    rank = dist.get_rank()
    own = compare(measured, formula, f"bytes on rank {rank}")
    everyone: list = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, f"Rank {rank} has {layers}\n{own}")
    return "\n".join(everyone)


@one_line_errors
def main() -> None:
    names = "13_train_gpt.py", "13_pipeline_by_hand.py", "13_pipeline.py"
    program = load_program(__doc__, names)
    config = program.parse_arguments()
    if program.path.name == "13_train_gpt.py":
        log(count_alone(program, config, choose_device()))
        return
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    if program.path.name == "13_pipeline.py":
        program.check_micro_batches(config, dist.get_world_size())
    log(count_stages(program, config, device))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
