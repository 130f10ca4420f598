"""What the programs share. Importing it refuses a PyTorch that is too old for them."""

import sys
from pathlib import Path

from common.torch_versions import problem

# before the program's other imports, which would fail for want of a name
sentence = problem(Path(sys.argv[0]))
if sentence:
    from common.distributed import refuse

    refuse(sentence)
