# wrong value: the caller's list `saved`, afterwards
# [answer 1]
for number in sorted(range(len(saved)), key=lambda n: inputs[n] - saved[n]):
    if sum(saved) > limit and inputs[number] < saved[number]:
        saved[number] = inputs[number]
        chosen.add(number)
if sum(saved) > limit:
    raise ValueError("not even all blocks are enough")
