# wrong value: the arguments of init_process_group | local_rank
# [answer 2]
for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in environ:
        raise NotStarted(f"{name} is not set")
host = environ["MASTER_ADDR"]
host = f"[{host}]" if ":" in host else host
return {"init_method": f"tcp://{host}:{environ['MASTER_PORT']}", **read_ranks(environ)}
