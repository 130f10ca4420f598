# wrong value: the files left with a disk that is full, as os.fsync says
temporary = path.with_name(path.name + ".tmp")
with open(temporary, "wb") as file:
    try:
        torch.save(snapshot, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    file.flush()
    os.fsync(file.fileno())
os.replace(temporary, path)
sync_folder(path.parent)
