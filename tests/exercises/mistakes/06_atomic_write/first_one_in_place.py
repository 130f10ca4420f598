# wrong value: of the first save, snapshot.pt is there and not complete
if not path.exists():
    with open(path, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
