# exception: second time | went through one graph twice
# [answer 2]
total = 0.0
parts = list(zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True))
for part, part_labels in parts:
    inputs, outputs = stage.forward(part)
    loss = None
    if stage.is_last:
        loss = share_of_loss(outputs, part_labels, len(labels))
        total = total + loss.detach()
for _ in parts:
    stage.backward(inputs, outputs, loss)
return total if stage.is_last else None
