"""Draw the life of an atomic save: what each name stands for after each step."""

from readable import MUTED
from svg import Drawing

# (what the program has just done, what each name holds, what a power failure leaves)
STEPS = (
    ("before", ("100", "", ""), "100"),
    ("torch.save", ("100", "part of 200", ""), "100"),
    ("flush, fsync", ("100", "200", ""), "100"),
    ("link", ("100", "200", "100"), "100"),
    ("replace", ("200", "", "100"), "100 or 200"),
    ("fsync folder", ("200", "", "100"), "200"),
)
NAMES = ("snapshot.pt", "snapshot.pt.tmp", "snapshot.pt.previous")
COLORS = {"100": "blue", "200": "green", "part of 200": "red", "100 or 200": "teal"}
LEFT, WIDTH = 188, 98

drawing = Drawing(
    786,
    330,
    "The life of an atomic save",
    "A table of three names over six moments. The old snapshot is that of step 100, "
    "the new one that of step 200. Before: snapshot.pt holds 100. While torch.save "
    "writes: snapshot.pt still holds 100, and snapshot.pt.tmp a part of 200. After "
    "flush and fsync: snapshot.pt.tmp holds the whole of 200. After the link: "
    "snapshot.pt.previous holds 100, too. After the replace: snapshot.pt holds 200, "
    "snapshot.pt.tmp is gone, snapshot.pt.previous holds 100. After the fsync of the "
    "folder the names are the same. Two rows below say what can be loaded from "
    "snapshot.pt. If the process is killed at that moment: 100 four times, then 200 "
    "twice. If the power fails: 100 four times, then 100 or 200, then 200.",
)
drawing.text(14, 24, "after this call", size=13, color=MUTED)
for row, name in enumerate(NAMES):
    drawing.text(14, 68 + row * 46, name, size=13, mono=True)
drawing.line(14, 184, 772, 184, color="gray")
drawing.text(14, 207, "What snapshot.pt gives", size=13, weight="bold")
drawing.text(14, 244, "if the process is killed", size=13)
drawing.text(14, 290, "if the power fails", size=13)
for column, (call, held, powerless) in enumerate(STEPS):
    x = LEFT + column * WIDTH
    drawing.text(x + 45, 24, call, size=13, anchor="middle", weight="bold")
    for row, snapshot in enumerate(held):
        if snapshot:
            half = snapshot.startswith("part")
            drawing.box(
                x,
                44 + row * 46,
                90,
                38,
                snapshot,
                fill=COLORS[snapshot],
                size=13,
                dashed=half,
            )
    for y, snapshot in ((220, held[0]), (266, powerless)):
        drawing.box(x, y, 90, 38, snapshot, fill=COLORS[snapshot], size=13)
drawing.text(
    14,
    321,
    "100, 200: the snapshots of these steps",
    size=12,
    color=MUTED,
    italic=True,
)
drawing.save(__file__)
