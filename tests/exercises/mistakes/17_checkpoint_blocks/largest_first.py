# wrong value: would do: which blocks free most?
# [answer 1]
held = sum(saved)
for number in sorted(range(len(saved)), key=saved.__getitem__, reverse=True):
    if held > limit:
        chosen.add(number)
        held -= saved[number] - inputs[number]
if held > limit:
    raise ValueError(f"{held} bytes are kept, and the limit is {limit}")
