# wrong value: rank 1 has an error of its own, and rank 0 exit code -6
# [answer 2]
for rank, code in CODE.findall(log):
    if int(code) < 0 and int(code) != -15:
        return int(rank), "killed"
for rank, message in own_errors(log):
    causes = [cause for words, cause in CAUSES.items() if words in message]
    return rank, (causes or ["program"])[0]
waiting = {int(rank) for rank, _ in ERROR.findall(log)}
return min(set(range(ranks)) - waiting), "absent"
