# wrong value: an environment without MASTER_ADDR | must raise NotStarted
# [answer 2]
host = environ.get("MASTER_ADDR", "localhost")
port = environ.get("MASTER_PORT", "29500")
if ":" in host:
    host = f"[{host}]"
own = read_ranks(environ)
return {
    "init_method": f"tcp://{host}:{port}",
    "rank": own["rank"],
    "world_size": own["world_size"],
}
