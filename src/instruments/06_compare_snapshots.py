"""Say whether two snapshots are equal, bit for bit, and if not, in which part.

    python src/instruments/06_compare_snapshots.py whole.pt resumed.pt

The exit status is 0 if they are equal, 1 if not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import Parser, one_line_errors
from common.snapshot import read_snapshot

Leaves = dict[tuple, Any]  # where in the snapshot, and what is there


def leaves(value: Any, place: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """(place, value) of everything in nested dicts, lists and tuples."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        yield place, value
        return
    if not items:  # an empty list is something else than none
        yield place, type(value).__name__
    for key, inside in items:
        yield from leaves(inside, (*place, key))


def compare(left: Leaves, right: Leaves) -> str:
    """How two parts differ: "equal", or what differs."""
    if left.keys() != right.keys():
        count = len(left.keys() ^ right.keys())
        return f"{count} entries are in one of them only"
    pairs = [(left[place], right[place]) for place in left]
    if not all(map(alike, pairs)):
        return "of another shape or kind"
    different, largest = 0, 0.0
    for a, b in pairs:
        if torch.is_tensor(a):
            # as bytes, so that 0.0 and -0.0 differ and NaN equals the same NaN
            unequal = (bits(a) != bits(b)).any(dim=-1)
            different += int(unequal.sum())
            if unequal.any():
                apart = (a.double() - b.double()).abs().max().item()
                largest = max(largest, apart)
        elif a != b:
            if len(pairs) == 1:
                return f"{a}, and {b}"
            different += 1
    if not different:
        return "equal"
    return f"{different:,} differ" + (f", by at most {largest:.1e}" if largest else "")


def alike(pair: tuple[Any, Any]) -> bool:
    """Whether two values can be compared number by number."""
    a, b = pair
    if torch.is_tensor(a) and torch.is_tensor(b):
        return a.shape == b.shape and a.dtype == b.dtype
    return type(a) is type(b)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of each number: [...] of any dtype to [numel, bytes] of uint8."""
    flat = tensor.contiguous().flatten()
    return flat.view(torch.uint8).reshape(flat.numel(), flat.element_size())


def count(part: Leaves) -> int:
    """How many numbers and other values are in a part."""
    tensors = [value for value in part.values() if torch.is_tensor(value)]
    others = len(part) - len(tensors)
    return sum(tensor.numel() for tensor in tensors) + others


@one_line_errors
def main() -> None:
    parser = Parser("Compare two snapshots bit for bit.")
    parser.add_argument("left", type=Path, metavar="FILE")
    parser.add_argument("right", type=Path, metavar="FILE")
    args = parser.parse_args()
    snapshots = [read_snapshot(path) for path in (args.left, args.right)]
    equal = True
    print(f"{'part':<14} {'values':>8}   {args.left} and {args.right}")
    for name in dict.fromkeys([*snapshots[0], *snapshots[1]]):
        left, right = (
            dict(leaves(s[name], (name,))) if name in s else {} for s in snapshots
        )
        result = compare(left, right)
        equal = equal and result == "equal"
        print(f"{name:<14} {count(left):>8,}   {result}")
    if not equal:
        print("Not equal")
        sys.exit(1)
    print("Equal in every bit")


if __name__ == "__main__":
    main()
