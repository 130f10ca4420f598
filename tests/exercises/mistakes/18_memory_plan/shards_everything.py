# wrong value: stage 1
# [answer 1]
if stage == 0:
    return 16 * parameters
return 16 * -(-parameters // ranks)
