# wrong value: left the caller's dict changed
temporary = path.with_name(path.name + ".tmp")
model = snapshot.pop("model")
try:
    with open(temporary, "wb") as file:
        torch.save({"model": model, **snapshot}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
snapshot["model"] = model
sync_folder(path.parent)
