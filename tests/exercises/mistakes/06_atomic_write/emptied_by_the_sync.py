# wrong value: after save 1, snapshot.pt can't be loaded
temporary = path.with_name(path.name + ".tmp")
try:
    torch.save(snapshot, temporary)
    with open(temporary, "wb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
