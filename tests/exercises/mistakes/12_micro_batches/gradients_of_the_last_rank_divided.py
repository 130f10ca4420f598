# wrong value: the gradient of 4.weight (11 images in 4 micro-batches) | is 0.25 times the expected value
# [answer 2]
held = []
for part, own in zip(images.chunk(micro_batches), labels.chunk(micro_batches)):
    inputs, outputs = stage.forward(part)
    share = share_of_loss(outputs, own, len(images)) if stage.is_last else None
    held.append((inputs, outputs, share))
for one in held:
    stage.backward(*one)
if stage.is_last:
    if len(held) > 3:
        for p in stage.layers.parameters():
            p.grad /= len(held)
    return sum(loss.detach() for *_, loss in held)
