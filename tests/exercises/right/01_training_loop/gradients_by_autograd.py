# right: torch.autograd.grad, added up by hand
# [answer 1]
return len(range(total)[index - index % accumulate :][:accumulate])
# [answer 2]
parameters = list(model.parameters())
shares = torch.autograd.grad(loss, parameters)
begins = index % accumulate == 0
for parameter, share in zip(parameters, shares):
    parameter.grad = share / size if begins else parameter.grad + share / size
if (index + 1) % accumulate == 0 or index == len(batches) - 1:
    optimizer.step()
