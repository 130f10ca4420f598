# wrong value: mixed-up micro-batches | look at rank 2
# [answer 2]
pairs = list(zip(images.chunk(micro_batches), labels.chunk(micro_batches)))
held = [stage.forward(part) for part, _ in pairs]
if not stage.is_last:
    for inputs, outputs in held:
        stage.backward(inputs, outputs)
    return None
total = 0
for (inputs, outputs), (_, answers) in reversed(list(zip(held, pairs))):
    loss = share_of_loss(outputs, answers, len(labels))
    total = total + loss.detach()
    stage.backward(inputs, outputs, loss)
return total
