# wrong value: first.grad | None
# [answer 3]
pass
