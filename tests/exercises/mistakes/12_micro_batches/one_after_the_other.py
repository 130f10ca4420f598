# wrong way: waits for a gradient after 1 of 6
# [answer 2]
total = None
parts = zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True)
for part, part_labels in parts:
    inputs, outputs = stage.forward(part)
    loss = None
    if stage.is_last:
        loss = share_of_loss(outputs, part_labels, len(labels))
        total = loss.detach() + (0 if total is None else total)
    stage.backward(inputs, outputs, loss)
return total
