# wrong way: with 6 micro-batches it is 6 and 6
# [answer 2]
inputs, outputs = stage.forward(images)
loss = share_of_loss(outputs, labels, len(labels)) if stage.is_last else None
stage.backward(inputs, outputs, loss)
return loss.detach() if stage.is_last else None
