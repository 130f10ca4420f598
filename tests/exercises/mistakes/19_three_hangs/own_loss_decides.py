# hang: rank 0
# [answer 3]
if float(loss) < limit:
    return step
