# wrong value: the files left with a disk that is full | has 2 items
temporary = path.with_name(path.name + ".tmp")
try:
    torch.save(snapshot, temporary)
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
except OSError:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
