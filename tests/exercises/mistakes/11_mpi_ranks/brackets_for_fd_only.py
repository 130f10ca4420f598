# wrong value: init_method for an IPv6 address | 2001:db8
# [answer 2]
for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in environ:
        raise NotStarted(name)
n = read_ranks(environ)
h = environ["MASTER_ADDR"]
if h.startswith("fd"):
    h = f"[{h}]"
return {"init_method": f"tcp://{h}:{environ['MASTER_PORT']}", "rank": n["rank"], "world_size": n["world_size"]}
