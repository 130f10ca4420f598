# right: divides the gradient before the step, not the loss
# [answer 1]
whole, rest = divmod(total, accumulate)
return accumulate if index < whole * accumulate else rest
# [answer 2]
if index % accumulate == 0:
    model.zero_grad()
loss.backward()
if index % accumulate == size - 1:
    for parameter in model.parameters():
        parameter.grad /= size
    optimizer.step()
