# wrong value: a short snapshot, saved after a long one was killed | "wb"
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "r+b" if temporary.exists() else "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
