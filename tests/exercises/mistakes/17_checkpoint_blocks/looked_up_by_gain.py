# wrong value: of 4 equal ones checkpointed, all keep | more than the limit
# [answer 1]
gains = [whole - less for whole, less in zip(saved, inputs)]
held = sum(saved)
for gain in sorted(gains, reverse=True):
    if held <= limit:
        break
    chosen.add(gains.index(gain))
    held -= gain
if held > limit:
    raise ValueError("more than the limit, with every block checkpointed")
