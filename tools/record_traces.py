"""Record docs/traces again: three runs, each of them slow for another reason.

    python tools/record_traces.py            # all three
    python tools/record_traces.py 17_2.json

Each file says how and when it was recorded. It keeps the times, and loses what
exercises/17_three_traces.py doesn't read, and what changes nothing there: events
inside a load, an autograd function, or an operator that lies in another operator.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `python tools/record_traces.py`
from tools.fresh_copy import fresh_copy  # noqa: E402
from tools.transcript_catalog import Entry, TranscriptError  # noqa: E402
from tools.transcripts import run_in  # noqa: E402

FOLDER = ROOT / "docs" / "traces"
FIELDS = ("ph", "pid", "tid", "cat", "name", "ts", "dur")
KEPT = ("step ", "gloo:", "c10d:")
CLOSED = ("enumerate(DataLoader)", "autograd::")  # hundreds of events lie inside
HERE = "torchrun --standalone --nproc-per-node=3"
NODES = """\
workshop cluster run srun --nodes=3 --ntasks-per-node=1 torchrun --nnodes=3 \
--nproc-per-node=1 --rdzv-backend=c10d --rdzv-id=1 --rdzv-endpoint=n1:29500"""
# one bucket: no two collectives of a rank overlap
PROFILE = "src/instruments/17_profile.py --steps 2 --bucket-mb 25"
RUNS = {  # the names don't tell which is which: learners find out
    "17_1.json": Entry(
        "17_1",
        f"{NODES} {PROFILE}",
        setup="workshop cluster up --nodes=3\nworkshop cluster delay 20ms n3",
        cleanup="workshop cluster down",
        needs=("practice cluster",),
    ),
    "17_2.json": Entry("17_2", f"{HERE} {PROFILE} --slow-rank 1 --batch-size 1024"),
    "17_3.json": Entry("17_3", f"{HERE} {PROFILE} --data-ms 120"),
}


def shorten(events: list[dict]) -> list[dict]:
    """The steps, loads and collectives, and operators up to two deep, in order."""
    kept, around = [], {}
    first = {event["pid"]: event["ts"] for event in events if event["name"] == "step 0"}
    timed = [e for e in events if e["ph"] == "X" and e["ts"] >= first[e["pid"]]]
    for event in sorted(timed, key=lambda e: (e["pid"], e["ts"], -e["dur"])):
        lane = event["pid"], event["tid"]
        inside = [o for o in around.get(lane, []) if o["ts"] + o["dur"] > event["ts"]]
        covers = event["cat"] == "cpu_op" or event["name"].startswith(CLOSED)
        around[lane] = inside + [event] * covers
        deep = len(inside) > 1 or any(o["name"].startswith(CLOSED) for o in inside)
        if (covers and not deep) or event["name"].startswith(KEPT):
            kept.append({field: event[field] for field in FIELDS})
    return kept


def record(entry: Entry) -> dict:
    """Run it in a fresh copy; the short trace, with how it was recorded."""
    if missing := entry.missing_programs():
        raise TranscriptError(f"this machine has no {', '.join(missing)}")
    with fresh_copy() as tree:
        run_in(tree, entry)
        trace = json.loads((tree / "trace.json").read_text())
    trace["traceEvents"] = shorten(trace["traceEvents"])
    trace["recorded"] = {
        "commands": [*entry.setup.splitlines(), entry.command],
        "torch": importlib.metadata.version("torch"),
        "date": datetime.date.today().isoformat(),
    }
    return trace


def write(path: Path, trace: dict) -> None:
    """A line for each event."""
    compact = json.JSONEncoder(separators=(",", ":"))
    events = ",\n".join(map(compact.encode, trace["traceEvents"]))
    text = json.dumps(trace | {"traceEvents": []}, indent=1)
    path.write_text(text.replace("[]", f"[\n{events}\n]", 1) + "\n")


def main(names: list[str]) -> None:
    if unknown := [name for name in names if name not in RUNS]:
        raise TranscriptError(f"{unknown[0]} is none of {', '.join(RUNS)}")
    FOLDER.mkdir(exist_ok=True)
    for name in names or RUNS:
        write(FOLDER / name, record(RUNS[name]))
        print(f"{FOLDER / name}: {(FOLDER / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except TranscriptError as error:
        print(f"record_traces: {error}", file=sys.stderr)
        sys.exit(2)
