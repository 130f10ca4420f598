"""One step of nn.DataParallel on four devices, and who waits meanwhile."""

from svg import Drawing

DEVICES = 4
LEFT, STEP, WIDE, HIGH = 130, 150, 130, 32  # px: first column, columns, boxes
COLORS = ("blue", "green", "orange", "violet")

drawing = Drawing(
    738,
    640,
    "One step of nn.DataParallel on four devices",
    "Four columns, device 0 to device 3; time runs downwards. Scatter: a batch of 32 "
    "images on device 0 is split, each device gets 8. Replicate: the weights on "
    "device 0, 791,080 bytes, are copied to devices 1, 2 and 3. Parallel_apply: on "
    "each device a thread of its own computes the forward pass of its 8 images. "
    "Gather: four times 8 scores travel to device 0 and become 32. Loss: device 0 "
    "computes it from all 32 scores while the other three wait. Backward: each device "
    "computes its share of the gradient. Reduce: the shares of devices 1, 2 and 3, "
    "791,080 bytes each, travel to device 0 and are added there. Step: the optimizer "
    "changes the "
    "weights on device 0, the other devices wait, and their copies are thrown away.",
)


def x(device):
    """The left edge of what stands on a device."""
    return LEFT + device * STEP


def middle(device):
    return x(device) + WIDE / 2


def name(y, step):
    drawing.text(12, y + 21, step, size=13, weight="bold")


def row(y, label, devices=range(DEVICES)):
    for device in devices:
        text = label.format(device)
        drawing.box(x(device), y, WIDE, HIGH, text, fill=COLORS[device], size=13)


def wait(y):
    for device in range(1, DEVICES):
        drawing.box(x(device), y, WIDE, HIGH, "waits", size=13, dashed=True)


def spread(y, label):
    """From device 0 to all; the row below begins at y + 34."""
    drawing.line(middle(0), y, middle(0), y + 14)
    drawing.line(middle(0), y + 14, middle(DEVICES - 1), y + 14)
    for device in range(DEVICES):
        drawing.arrow(middle(device), y + 14, middle(device), y + 34, head=8)
    drawing.text(middle(1) - 52, y + 9, label, size=12, behind="#ffffff")


def collect(y, label):
    """From all to device 0; the row below begins at y + 34."""
    for device in range(1, DEVICES):
        drawing.line(middle(device), y, middle(device), y + 20)
    drawing.line(middle(0), y + 20, middle(DEVICES - 1), y + 20)
    drawing.line(middle(0), y, middle(0), y + 20)
    drawing.arrow(middle(0), y + 18, middle(0), y + 34, head=8)
    drawing.text(middle(1) - 52, y + 33, label, size=12, behind="#ffffff")


for device in range(DEVICES):
    drawing.group(x(device) - 8, 10, WIDE + 16, 620, f"device {device}")
row(44, "batch: 32 images", [0])
name(84, "scatter")
spread(76, "8 images each")
row(110, "8 images")
row(162, "weights", [0])
name(200, "replicate")
spread(194, "791,080 bytes each")
row(228, "copy of weights", range(1, DEVICES))
row(228, "weights", [0])
name(276, "parallel_apply")
row(276, "forward, thread {}")
name(312, "gather")
collect(308, "8 x 10 scores each")
row(342, "32 x 10 scores", [0])
name(388, "loss")
row(388, "loss: 1 number", [0])
wait(388)
name(436, "backward")
row(436, "backward")
name(474, "reduce")
collect(468, "791,080 bytes each")
row(502, "sum of gradients", [0])
name(550, "step")
row(550, "optimizer.step()", [0])
wait(550)
for device in range(DEVICES):
    end = "copy dropped" if device else "new weights"
    drawing.text(middle(device), 610, end, size=13, anchor="middle", behind="#ffffff")
drawing.save(__file__)
