# wrong value: the layers are left in evaluation mode
# [answer 2]
stage.layers.eval()
waiting = []
parts = zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True)
for part, part_labels in parts:
    inputs, outputs = stage.forward(part)
    loss = share_of_loss(outputs, part_labels, len(labels)) if stage.is_last else None
    waiting.append((inputs, outputs, loss))
for inputs, outputs, loss in waiting:
    stage.backward(inputs, outputs, loss)
return sum(loss.detach() for *_, loss in waiting) if stage.is_last else None
