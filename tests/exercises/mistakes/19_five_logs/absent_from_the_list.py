# wrong value: which torchrun ended by SIGTERM
# [answer 2]
for rank, message in own_errors(log):
    causes = [CAUSES[words] for words in CAUSES if words in message]
    return rank, causes[0] if causes else "program"
listed = {int(rank): int(code) for rank, code in CODE.findall(log)}
for rank, code in listed.items():
    if code < 0 and code != -15:
        return rank, "killed"
return min(set(range(ranks)) - set(listed), default=-1), "absent"
