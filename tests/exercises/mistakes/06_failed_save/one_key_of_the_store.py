# wrong value: this rank
store = dist.distributed_c10d._get_default_store()
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
        store.set("save", "ok")
    except Exception as error:
        store.set("save", f"failed: {error}")
told = store.get("save").decode()
if told != "ok":
    raise SaveError(told)
