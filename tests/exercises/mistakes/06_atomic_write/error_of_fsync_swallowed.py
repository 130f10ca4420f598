# wrong value: as os.fsync says | returned as if nothing had gone wrong
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        try:
            os.fsync(file.fileno())
        except OSError:
            pass
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
