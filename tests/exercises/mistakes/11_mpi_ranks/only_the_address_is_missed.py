# exception: KeyError | MASTER_PORT
# [answer 2]
if "MASTER_ADDR" not in environ:
    raise NotStarted("MASTER_ADDR is not set: hand it over")
host = environ["MASTER_ADDR"]
host = f"[{host}]" if ":" in host else host
own = read_ranks(environ)
del own["local_rank"]
return {"init_method": f"tcp://{host}:{environ['MASTER_PORT']}", **own}
