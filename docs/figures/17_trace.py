"""One step of two ranks, drawn from what src/instruments/17_profile.py recorded.

torchrun --standalone --nproc-per-node=2 src/instruments/17_profile.py --data-ms 12 \
    --slow-rank 1 --steps 6
python docs/figures/17_trace.py trace.json 4    # takes step 4 into 17_trace.json
"""

import json
import sys
from pathlib import Path

from svg import Drawing

LEFT, RIGHT = 100, 700  # px: between them lies the time
ROW, HIGH, PANEL = 28, 22, 112
NEAR = 1.0  # ms: operators that are so near are drawn as one
SAVED = Path(__file__).with_suffix(".json")
CALLS = (
    "Both ranks wait for a batch in the DataLoader.",
    "Rank 1 computes more than rank 0: it is late for all that follows.",
    "Rank 0 has nothing left to compute. It waits until rank 1 starts the all-reduce.",
    "Rank 1's first bucket is sent during its backward pass. That costs no time.",
    "The last bucket is exposed on both ranks: sending it makes the step longer.",
)


def spans(events, wanted):
    """[begins, ends] in ms, in order; those nearer than NEAR are one."""
    found = []
    for event in sorted(filter(wanted, events), key=lambda event: event["ts"]):
        begin, end = event["ts"] / 1000, (event["ts"] + event["dur"]) / 1000
        if found and begin < found[-1][1] + NEAR:
            found[-1][1] = max(end, found[-1][1])
        else:
            found.append([begin, end])
    return found


def take(path, step):
    """The spans of each rank in this step, in ms after the first rank begins it."""
    every = [e for e in json.loads(Path(path).read_text())["traceEvents"] if "dur" in e]
    whole = [e for e in every if e["name"] == f"step {step}"]
    zero = min(e["ts"] for e in whole)
    ranks = []
    for frame in sorted(whole, key=lambda e: e["pid"]):
        last = frame["ts"] + frame["dur"]
        events = [
            e | {"ts": e["ts"] - zero}
            for e in every
            if e["pid"] == frame["pid"] and frame["ts"] <= e["ts"] < last
        ]
        loads = spans(events, lambda e: e["name"].startswith("enumerate(DataLoader)"))
        after = max(end for _, end in loads)
        names = {
            "operators": lambda e, after=after: (
                e["cat"] == "cpu_op" and e["ts"] / 1000 >= after
            ),
            "optimizer": lambda e: e["name"].startswith("Optimizer.step"),
        }
        found = {name: spans(events, wanted) for name, wanted in names.items()}
        sent = [spans([e], bool)[0] for e in events if e["name"] == "gloo:all_reduce"]
        ranks.append(found | {"loads": loads, "all_reduce": sorted(sent)})
    rounded = json.loads(json.dumps(ranks), parse_float=lambda x: round(float(x), 2))
    SAVED.write_text(json.dumps({"step": step, "ranks": rounded}) + "\n")


def x(ms):
    return LEFT + ms * scale


def bar(y, begin, end, fill, **how):
    drawing.box(x(begin), y, max(2, (end - begin) * scale), HIGH, fill=fill, **how)


def badge(number, ms, y):
    how = {"fill": "yellow", "size": 12, "weight": "bold", "radius": 10}
    drawing.box(x(ms) - 10, y, 20, 20, str(number), **how)


def panel(top, rank, lane, cuts):
    """A row of what the rank computes, and one for each bucket."""
    drawing.text(15, top + 16, f"rank {rank}", weight="bold")
    for begin, end in lane["operators"]:
        bar(top, begin, end, "blue", radius=1)
    for begin, end in lane["loads"]:
        bar(top, begin, end, "green", radius=1)
    for begin, end in lane["optimizer"]:
        bar(top, begin, end, "gray", radius=1)
    for bucket, (begin, end) in enumerate(lane["all_reduce"]):
        y, cut = top + (bucket + 1) * ROW, min(end, cuts[bucket])
        drawing.text(15, y + 15, f"bucket {bucket}", size=13)
        if begin < cut:
            bar(y, begin, cut, "white", radius=1, dashed=True)
        bar(y, cut, end, "orange", radius=1)


if sys.argv[1:]:
    take(sys.argv[1], int(sys.argv[2]))
ranks = json.loads(SAVED.read_text())["ranks"]
sent = [rank["all_reduce"] for rank in ranks]
cuts = [max(b for b, _ in each) for each in zip(*sent, strict=True)]
longest = max(
    end for rank in ranks for _, end in rank["all_reduce"] + rank["optimizer"]
)
scale = (RIGHT - LEFT) / longest
drawing = Drawing(
    720,
    430,
    "A trace of one step",
    "One step of two ranks, recorded. In a row of its own, each rank loads a batch, "
    "computes, and later runs the optimizer; a row for each bucket shows its all- "
    "reduce. Rank 0 computes until 66 ms, rank 1 until 143 ms. Both of rank 0's "
    "buckets wait until rank 1 starts the same all-reduce, at 117 and 135 ms. Rank "
    "1's first bucket is sent while it computes, the second one afterwards. Numbers "
    "mark: 1 loading, 2 rank 1's longer computation, 3 waiting, 4 hidden sending, 5 "
    "exposed sending.",
)
for rank, lane in enumerate(ranks):
    panel(20 + rank * PANEL, rank, lane, cuts)
slow, late = ranks[0]["all_reduce"], ranks[1]["all_reduce"]
first, below = ranks[0]["loads"][0], 20 + PANEL
badge(1, sum(first) / 2, 21)
badge(2, (ranks[1]["loads"][0][1] + late[0][0]) / 2, below + 1)
badge(3, (slow[1][0] + cuts[1]) / 2, 21 + 2 * ROW)
badge(4, late[0][1] + 4, below + ROW + 1)
badge(5, (cuts[1] + late[1][1]) / 2, below + 2 * ROW + 1)
drawing.line(LEFT, below + 92, RIGHT, below + 92)
for ms in range(0, int(longest) + 1, 20):
    drawing.line(x(ms), below + 92, x(ms), below + 97)
    label = f"{ms} ms" if not ms else str(ms)
    drawing.text(x(ms), below + 111, label, size=12, anchor="middle")
kinds = [
    ("green", "loads"),
    ("blue", "computes"),
    ("white", "waits"),
    ("orange", "sends"),
]
drawing.legend(LEFT, 270, [*kinds, ("gray", "optimizer")])
for number, sentence in enumerate(CALLS, start=1):
    y = 280 + number * 26 - 16
    drawing.box(15, y, 20, 20, str(number), fill="yellow", size=12, radius=10)
    drawing.text(44, y + 15, sentence, size=13)
drawing.save(__file__)
