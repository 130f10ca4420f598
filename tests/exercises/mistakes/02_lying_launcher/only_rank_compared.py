# wrong value: All pairs that differ | LOCAL_RANK
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return []
name = "OMPI_COMM_WORLD_RANK" if "OMPI_COMM_WORLD_RANK" in environ else "SLURM_PROCID"
if "RANK" in environ and name in environ and int(environ["RANK"]) != int(environ[name]):
    return [("RANK", name)]
return []
