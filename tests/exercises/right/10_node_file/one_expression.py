# right: an OrderedDict, and an error raised within an expression
# [answer 1]
    import collections, io
    c = collections.OrderedDict()
    for line in io.StringIO(text):
        if (line := line.rstrip("\n")):
            c[line] = c.get(line, 0) + 1
    if not c:
        raise ValueError("empty")
    if len(set(c.values())) != 1:
        raise ValueError("unequal: " + ", ".join(f"{k}: {v}" for k, v in c.items()))
    return [*c], next(iter(c.values()))
# [answer 2]
    want = hostname.split(".")[0]
    return next((i for i, h in enumerate(hosts) if h.split(".")[0] == want), None) if any(h.split(".")[0] == want for h in hosts) else (_ for _ in ()).throw(ValueError(hostname))
