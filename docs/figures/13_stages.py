"""Draw a byte GPT in three stages, and what crosses their boundaries."""

from svg import Drawing

WIDE, GAP, LEFT = 200, 44, 26  # px
STAGES = (
    ("rank 0", "blue", ("embedding", "block 1")),
    ("rank 1", "green", ("block 2", "block 3")),
    ("rank 2", "orange", ("block 4", "head", "loss")),
)

drawing = Drawing(
    740,
    300,
    "A byte GPT in three stages",
    "Three ranks side by side. Rank 0 has the embedding and block 1, rank 1 has blocks "
    "2 and 3, rank 2 has block 4, the head and the loss. The tokens of a micro-batch "
    "enter at rank 0, the targets at rank 2. An arrow from each rank to the next "
    "carries activations, an arrow back carries the gradients of these activations, of "
    "the same size. Weights, their gradients and the state of the optimizer never "
    "leave their rank.",
)
for number, (name, fill, layers) in enumerate(STAGES):
    left = LEFT + number * (WIDE + GAP)
    drawing.group(left, 20, WIDE, 186, name, color=fill)
    for place, layer in enumerate(layers):
        drawing.box(left + 20, 54 + 48 * place, WIDE - 40, 36, layer, fill=fill)
    if number:
        drawing.arrow(left - GAP, 80, left, 80, color="blue")
        drawing.arrow(left, 150, left - GAP, 150, color="red")
drawing.text(LEFT, 236, "tokens [B/m, T] enter here", size=13)
drawing.text(740 - LEFT, 236, "targets [B/m, T] enter here", size=13, anchor="end")
drawing.line(180, 268, 214, 268, color="blue", width=2)
drawing.text(222, 273, "activations", size=13)
drawing.line(330, 268, 364, 268, color="red", width=2)
drawing.text(372, 273, "their gradients, also [B/m, T, width]", size=13)
drawing.save(__file__)
