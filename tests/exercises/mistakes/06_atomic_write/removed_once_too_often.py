# exception: FileNotFoundError | after three saves
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
finally:
    temporary.unlink()
sync_folder(path.parent)
