# wrong value: the save before it was killed, and this one raised FileExistsError
temporary = path.with_name(path.name + ".tmp")
with open(temporary, "xb") as file:
    try:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    except BaseException:
        temporary.unlink()
        raise
os.replace(temporary, path)
sync_folder(path.parent)
