# wrong way: renamed before os.fsync
temporary = path.with_name(path.name + ".tmp")
try:
    torch.save(snapshot, temporary)
    os.replace(temporary, path)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
