# wrong value: a list, not a set
# [answer 1]
chosen = []
total = sum(saved)
for n in sorted(range(len(saved)), key=lambda n: inputs[n] - saved[n]):
    if total > limit:
        total += inputs[n] - saved[n]
        chosen.append(n)
if total > limit:
    raise ValueError(limit)
