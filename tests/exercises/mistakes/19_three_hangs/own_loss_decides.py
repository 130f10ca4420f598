# hang: rank 0 | more often than others
# [answer 3]
if float(loss) < limit:
    return step
