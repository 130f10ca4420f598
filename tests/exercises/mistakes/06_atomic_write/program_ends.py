# wrong value: ended the program | let the error reach the caller
import sys

temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except BaseException as error:
    temporary.unlink(missing_ok=True)
    sys.exit(f"no space: {error}")
sync_folder(path.parent)
