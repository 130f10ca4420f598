# wrong value: the own errors
# [answer 1]
found = [(int(rank), message) for rank, message in ERROR.findall(log)]
own = [f for f in found if not any(words in f[1] for words in CONSEQUENCES)]
return sorted(own)
