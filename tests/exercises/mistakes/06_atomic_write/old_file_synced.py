# wrong way: renamed before os.fsync
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
    if path.exists():
        with open(path, "rb") as old:
            os.fsync(old.fileno())
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
