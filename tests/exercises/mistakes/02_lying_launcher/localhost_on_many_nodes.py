# wrong value: MASTER_ADDR=127.0.0.1 on 12 node(s) | is True, expected False
# [answer 3]
return environ["MASTER_ADDR"] != "localhost" or int(environ["SLURM_NNODES"]) == 1
