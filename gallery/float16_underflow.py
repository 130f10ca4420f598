"""Small gradients in float16 become 0, and the model does not learn."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(64, 64)
before = model.weight.detach().clone()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", enabled=False)

for step in (1, 2, 3):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(torch.randn(8, 64))
    loss = 1e-7 * outputs.float().square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = model.weight.grad.norm().item()
    zeros = (model.weight.grad == 0).float().mean().item()
    print(f"step {step}: loss {loss.item():.2e}, gradient norm {norm:.2e}")
    scaler.step(optimizer)
    scaler.update()

moved = (model.weight != before).float().mean().item()
print(f"gradients that are exactly 0: {zeros:.0%}")
print(f"weights that have moved after 3 steps: {moved:.0%}")

# The cure: A loss that is scaled up keeps small gradients in float16 from becoming 0.
#
# -scaler = torch.amp.GradScaler("cpu", enabled=False)
# +scaler = torch.amp.GradScaler("cpu")
