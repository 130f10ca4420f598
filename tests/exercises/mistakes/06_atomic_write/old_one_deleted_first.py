# wrong value: after a kill at call | is gone
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    path.unlink(missing_ok=True)
    temporary.rename(path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
