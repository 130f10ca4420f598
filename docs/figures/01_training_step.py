"""One training step of lesson 01."""

from svg import Drawing

DESCRIPTION = (
    "Upper row, from left to right: the training set of 1,438 images; an arrow "
    "'data' to the batch, 32 images and their labels; an arrow 'forward' to the "
    "model with 197,770 weights; an arrow 'forward' to the loss, one number. Lower "
    "row, from right to left: an arrow 'backward' leads down from the loss to the "
    "gradient, 197,770 numbers in .grad; from there an arrow 'step' to the optimizer "
    "with 197,770 numbers of momentum, and from it an arrow 'step' up to the model's "
    "weights."
)

drawing = Drawing(760, 292, "One training step", DESCRIPTION)
TOP, BOTTOM, HEIGHT = 40, 200, 72

drawing.box(20, TOP, 130, HEIGHT, "training set\n1,438 images", fill="gray")
drawing.box(225, TOP, 130, HEIGHT, "batch\n32 images", fill="blue")
drawing.box(430, TOP, 130, HEIGHT, "model\n197,770 weights", fill="green", size=14)
drawing.box(635, TOP, 105, HEIGHT, "loss\n1 number", fill="orange")
drawing.box(
    600, BOTTOM, 140, HEIGHT, "gradient\n197,770 numbers", fill="violet", size=14
)
drawing.box(
    395,
    BOTTOM,
    140,
    HEIGHT,
    "optimizer\nmomentum:\n197,770 numbers",
    fill="teal",
    size=14,
)

middle = TOP + HEIGHT / 2
drawing.arrow(150, middle, 225, middle, label="data")
drawing.arrow(355, middle, 430, middle, label="forward")
drawing.arrow(560, middle, 635, middle, label="forward")
drawing.arrow(665, TOP + HEIGHT, 665, BOTTOM, label="backward")
drawing.arrow(600, BOTTOM + HEIGHT / 2, 535, BOTTOM + HEIGHT / 2, label="step")
drawing.arrow(495, BOTTOM, 495, TOP + HEIGHT, label="step")

drawing.save(__file__)
