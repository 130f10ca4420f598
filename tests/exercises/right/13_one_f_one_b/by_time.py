# right: sorted by the slot in which each begins, as pairs in lists
# [answer 1]
ahead = micro_batches if micro_batches < ranks - 1 - rank else ranks - 1 - rank
# [answer 2]
actions = []
for k in range(micro_batches):
    actions.append((2 * k if k >= ahead else k - micro_batches, ["forward", k]))
    actions.append((2 * (k + ahead) + 1, ["backward", k]))
return [action for _, action in sorted(actions)]
