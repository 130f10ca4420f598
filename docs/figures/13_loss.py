"""Draw the loss of the byte GPT over 300 steps, from a recorded run.

python src/13_train_gpt.py 300 --metrics docs/figures/13_loss.json
"""

import json
from pathlib import Path

from readable import RULE
from svg import Drawing

run = json.loads(Path(__file__).with_suffix(".json").read_text())
losses, entropy, test_loss = run["losses"], run["unigram_entropy"], run["test_loss"]
LEFT, RIGHT, TOP, BOTTOM = 70, 690, 30, 270  # px
HIGHEST, LOWEST = 6.0, 1.0  # nats per byte


def x(step):
    return LEFT + (RIGHT - LEFT) * step / len(losses)


def y(loss):
    return TOP + (BOTTOM - TOP) * (HIGHEST - loss) / (HIGHEST - LOWEST)


drawing = Drawing(
    720,
    320,
    "The loss of a byte GPT over 300 steps",
    "A curve of the loss in nats per byte over 300 steps. It begins near 6, falls "
    "below the dashed line of the frequencies alone, at 3.14, within the first 40 "
    "steps, and is near 2 at the end. A second line marks the loss on the test text "
    "after 300 steps, 2.18.",
)
for loss in range(int(LOWEST), int(HIGHEST) + 1):
    drawing.line(LEFT, y(loss), RIGHT, y(loss), color=RULE, width=1)
    drawing.text(LEFT - 10, y(loss) + 5, str(loss), size=13, anchor="end")
for step in range(0, len(losses) + 1, 50):
    drawing.text(x(step), BOTTOM + 20, str(step), size=13, anchor="middle")
drawing.text((LEFT + RIGHT) / 2, BOTTOM + 42, "step", size=14, anchor="middle")
drawing.text(12, TOP - 10, "nats per byte", size=14)
drawing.polyline([(x(step), y(loss)) for step, loss in enumerate(losses)], color="blue")
label = f"by the frequencies of the bytes alone: {entropy:.2f}"
drawing.line(LEFT, y(entropy), RIGHT, y(entropy), color="red", dashed=True)
drawing.text(RIGHT, y(entropy) - 8, label, size=13, anchor="end", color="red")
label = f"test text after {len(losses)} steps: {test_loss:.2f}"
drawing.line(x(200), y(test_loss), RIGHT, y(test_loss), color="green", dashed=True)
drawing.text(RIGHT, y(test_loss) + 28, label, size=13, anchor="end", color="green")
drawing.save(__file__)
