# wrong value: which left with status 3
# [answer 2]
for rank, message in own_errors(log):
    causes = [CAUSES[words] for words in CAUSES if words in message]
    return rank, causes[0] if causes else "program"
for rank, code in CODE.findall(log):
    if code not in ("1", "-15"):
        return int(rank), "killed"
waiting = {int(rank) for rank, _ in ERROR.findall(log)}
return min(set(range(ranks)) - waiting), "absent"
