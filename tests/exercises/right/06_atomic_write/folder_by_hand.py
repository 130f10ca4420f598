# right: the folder is opened and synced here, the temporary file removed by a callback
import contextlib

temporary = Path(f"{path}.part")
with contextlib.ExitStack() as stack:
    stack.callback(temporary.unlink, missing_ok=True)
    with temporary.open("wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file)
    os.rename(temporary, path)
folder = os.open(str(path.parent), os.O_RDONLY | os.O_DIRECTORY)
os.fsync(folder)
os.close(folder)
