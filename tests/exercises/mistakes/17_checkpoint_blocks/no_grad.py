# wrong value: has no gradient with
# [answer 2]
if number in chosen:
    with torch.no_grad():
        x = block(x)
else:
    x = block(x)
