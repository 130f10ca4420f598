# wrong value: the arguments of init_process_group | tcp://[n1]:
# [answer 2]
for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in environ:
        raise NotStarted(f"{name} is not set")
own = read_ranks(environ)
return {
    "init_method": f"tcp://[{environ['MASTER_ADDR']}]:{environ['MASTER_PORT']}",
    "rank": own["rank"],
    "world_size": own["world_size"],
}
