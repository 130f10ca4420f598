# wrong value: the files left with a disk that is full | has 2 items
temporary = path.with_name(path.name + ".tmp")
with open(temporary, "wb") as file:
    torch.save(snapshot, file)
    file.flush()
    os.fsync(file.fileno())
os.replace(temporary, path)
sync_folder(path.parent)
