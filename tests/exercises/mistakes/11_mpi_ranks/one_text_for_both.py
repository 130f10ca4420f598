# wrong value: the error is the same, whichever of the two is missing
# [answer 2]
if "MASTER_ADDR" not in environ or "MASTER_PORT" not in environ:
    raise NotStarted("MASTER_ADDR or MASTER_PORT is missing")
host, port = environ["MASTER_ADDR"], environ["MASTER_PORT"]
if ":" in host:
    host = f"[{host}]"
own = read_ranks(environ)
del own["local_rank"]
return {"init_method": f"tcp://{host}:{port}", **own}
