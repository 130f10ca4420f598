# wrong value: returned as if nothing had gone wrong | full
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except Exception as error:
    print("could not save:", error)
    temporary.unlink(missing_ok=True)
sync_folder(path.parent)
