# wrong value: an environment without MASTER_PORT | must raise NotStarted
# [answer 2]
if "MASTER_ADDR" not in environ:
    raise NotStarted("MASTER_ADDR is not set: hand it over")
host, port = environ["MASTER_ADDR"], environ.get("MASTER_PORT", "29500")
host = f"[{host}]" if ":" in host else host
own = read_ranks(environ)
del own["local_rank"]
return {"init_method": f"tcp://{host}:{port}", **own}
