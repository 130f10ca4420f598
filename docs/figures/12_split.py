"""The network of the digits on two devices: what is where, and what is sent."""

from svg import Drawing

drawing = Drawing(
    720,
    378,
    "The network of the digits on two devices",
    "Two devices side by side. Device 0 gets 32 images and holds the first five "
    "layers: two convolutions, each followed by a ReLU, and a pooling; these are "
    "19,200 bytes of parameters, as many of gradients and as many of momentum, and "
    "532,480 bytes of activations that are saved for backward. Device 1 gets 32 "
    "labels, holds the last three layers, of which only the linear one has "
    "parameters, three times 20,520 bytes, saves 67,076 bytes of activations, and "
    "computes the loss. Forward, "
    "activations of 65,536 bytes are sent from device 0 to device 1. Backward, their "
    "gradient of 65,536 bytes is sent from device 1 to device 0.",
)

LEFT, RIGHT, WIDE, TOP, HIGH = 20, 450, 250, 70, 28  # px


def device(x, number, color, layers, held):
    drawing.group(x, TOP - 42, WIDE, 318, f"device {number}", color=color)
    y = TOP
    for layer in layers:
        drawing.box(x + 15, y, WIDE - 30, HIGH, layer, fill=color, size=13)
        y += HIGH + 8
    y = TOP + 5 * (HIGH + 8) + 18
    for line in held:
        drawing.text(x + 15, y, line, size=13, behind="#ffffff")
        y += 21


device(
    LEFT,
    0,
    "blue",
    ["Conv2d, 1 to 16", "ReLU", "Conv2d, 16 to 32", "ReLU", "MaxPool2d"],
    [
        "parameters 19,200 bytes",
        "gradients 19,200",
        "momentum 19,200",
        "activations 532,480",
    ],
)
device(
    RIGHT,
    1,
    "green",
    ["Flatten", "Dropout (0)", "Linear, 512 to 10", "loss"],
    [
        "parameters 20,520 bytes",
        "gradients 20,520",
        "momentum 20,520",
        "activations 67,076",
    ],
)
drawing.text(LEFT + 120, 18, "32 images", size=13, anchor="middle")
drawing.text(RIGHT + 120, 18, "32 labels", size=13, anchor="middle")
out, into = LEFT + WIDE, RIGHT
middle = (out + into) / 2
drawing.arrow(out, 120, into, 120, "forward", color="blue")
drawing.text(middle, 140, "activations, 65,536 bytes", size=12, anchor="middle")
drawing.arrow(into, 200, out, 200, "", color="green")
drawing.text(middle, 191, "backward", size=13, anchor="middle", color="green")
drawing.text(middle, 220, "their gradient, 65,536 bytes", size=12, anchor="middle")
drawing.text(20, 369, "For one step of 32 images, cut after layer 5.", size=13)
drawing.save(__file__)
