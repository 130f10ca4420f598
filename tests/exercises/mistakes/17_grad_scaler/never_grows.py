# wrong value: the scale after step 2
# [answer 2]
if finite:
    optimizer.step()
else:
    self.scale /= 2
