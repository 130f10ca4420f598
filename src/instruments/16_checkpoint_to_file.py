"""Turn the newest checkpoint of a sharded model into one snapshot file.

Run from the folder of the workshop; no ranks are needed:

    python src/instruments/16_checkpoint_to_file.py checkpoints gpt.pt
    python src/13_train_gpt.py 600 --save-every 100 --snapshot gpt.pt   # resumes it
"""

import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.checkpoint import FAILURES, newest, unreadable
from common.distributed import BadInput, Parser, one_line_errors, output_file
from common.snapshot import write_snapshot


def read_whole(path: Path) -> dict:
    """Everything that is in a checkpoint, with whole tensors, by their names.

    Raises:
        BadInput: it cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is one rank, which is intended
        one_file = Path(folder, "whole.pt")
        try:
            FileSystemReader(path).read_metadata()  # else a traceback would be logged
            dcp_to_torch_save(path, one_file)
            return torch.load(one_file, weights_only=True)
        except FAILURES as error:
            raise BadInput(unreadable(path, error)) from error


def numbered(optimizer: dict) -> dict:
    """The state of an optimizer as ``optimizer.state_dict()`` has it.

    A checkpoint refers to each parameter by its name, because ranks may hold different
    ones; the optimizer itself numbers them.
    """
    state, groups, count = {}, [], 0
    for group in optimizer["param_groups"]:
        indices = dict(enumerate(group["params"], count))
        count += len(indices)
        for index, name in indices.items():
            state[index] = optimizer["state"][name]
        groups.append(group | {"params": list(indices)})
    return {"state": state, "param_groups": groups}


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, help="of checkpoint-STEPS")
    parser.add_argument("file", type=output_file, help="snapshot to write")
    args = parser.parse_args()
    if not args.folder.is_dir():
        raise BadInput(f"there is no folder {args.folder}: give that of --checkpoints")
    path = newest(args.folder)
    if path is None:
        raise BadInput(
            f"{args.folder} holds no complete checkpoint-STEPS: give the folder of "
            "--checkpoints"
        )
    whole = read_whole(path)
    try:
        snapshot = {
            "model": whole["model"],
            "optimizer": numbered(whole["optimizer"]),
            "steps_run": whole["training"]["steps_run"],
        }
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"{path} is no checkpoint of 16_fsdp_tensor_parallel.py: give the folder "
            "of its --checkpoints"
        ) from error
    write_snapshot(snapshot, args.file)
    print(f"{path} after {snapshot['steps_run']} steps is now in {args.file}")


if __name__ == "__main__":
    main()
