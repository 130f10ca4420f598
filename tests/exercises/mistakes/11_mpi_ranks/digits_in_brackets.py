# wrong value: the arguments of init_process_group | [10.0.0.7]
# [answer 2]
for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in environ:
        raise NotStarted(f"{name} is not set")
host = environ["MASTER_ADDR"]
host = f"[{host}]" if host[:2] in ("10", "fd", "fe") else host
own = read_ranks(environ)
del own["local_rank"]
return {"init_method": f"tcp://{host}:{environ['MASTER_PORT']}", **own}
