"""How ranks, calls and long lines are written in a message."""

from __future__ import annotations

WIDTH = 100


def ranks_text(ranks: list[int]) -> str:
    """``rank 2``, ``ranks 0 and 1``, ``ranks 0, 1 and 3``."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    head = ", ".join(map(str, ranks[:-1]))
    return f"ranks {head} and {ranks[-1]}"


def call_text(row: dict, place: str | None = None) -> str:
    """``all_reduce(float32[4], SUM) at line 41``, from a row of a ledger."""
    inside = [f"{d}{s}" for d, s in zip(row["dtypes"], row["shapes"], strict=False)]
    inside = inside[:3] + (["..."] if len(inside) > 3 else [])
    if row["reduce_op"]:
        inside.append(row["reduce_op"])
    if row["root"] is not None:
        inside.append(f"root {row['root']}")
    if row["peer"] is not None:
        direction = "to" if row["op"] == "send" else "from"
        inside.append(f"{direction} rank {row['peer']}")
    if row["tag"]:
        inside.append(f"tag {row['tag']}")
    where = f" at {row['where']}" if place is None and row["where"] else place or ""
    return f"{row['op']}({', '.join(inside)}){where}"


def cut(line: str) -> str:
    return line if len(line) <= 2 * WIDTH else line[: 2 * WIDTH - 3] + "..."
