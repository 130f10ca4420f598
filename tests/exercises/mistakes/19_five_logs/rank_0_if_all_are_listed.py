# wrong value: rank 0 waited for rank 1, which torchrun ended by SIGTERM
# [answer 2]
for rank, message in own_errors(log):
    return rank, next((c for w, c in CAUSES.items() if w in message), "program")
for rank, code in CODE.findall(log):
    if int(code) < 0 and int(code) != -15:
        return int(rank), "killed"
seen = {int(rank) for rank, _ in CODE.findall(log)}
return min(set(range(ranks)) - seen, default=0), "absent"
