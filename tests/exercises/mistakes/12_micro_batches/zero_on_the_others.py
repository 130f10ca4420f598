# wrong value: only the last rank has a loss to return
# [answer 2]
waiting, total = [], torch.zeros((), dtype=torch.float64)
parts = zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True)
for part, part_labels in parts:
    inputs, outputs = stage.forward(part)
    loss = None
    if stage.is_last:
        loss = share_of_loss(outputs, part_labels, len(labels))
        total += loss.detach()
    waiting.append((inputs, outputs, loss))
for inputs, outputs, loss in waiting:
    stage.backward(inputs, outputs, loss)
return total
