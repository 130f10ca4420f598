# wrong value: the own errors
# [answer 1]
found = {}
for rank, message in ERROR.findall(log):
    if not any(words in message for words in CONSEQUENCES):
        found.setdefault(int(rank), message)
return sorted(found.items())
