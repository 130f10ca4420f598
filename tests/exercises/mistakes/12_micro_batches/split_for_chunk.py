# exception: line
# [answer 2]
size = len(images) // micro_batches
waiting = []
for part, part_labels in zip(images.split(size), labels.chunk(micro_batches), strict=True):
    inputs, outputs = stage.forward(part)
    loss = share_of_loss(outputs, part_labels, len(labels)) if stage.is_last else None
    waiting.append((inputs, outputs, loss))
for inputs, outputs, loss in waiting:
    stage.backward(inputs, outputs, loss)
return sum(loss.detach() for *_, loss in waiting) if stage.is_last else None
