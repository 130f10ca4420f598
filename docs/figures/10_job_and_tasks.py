"""Draw a PBS job on two hosts: what starts what, and with which environment."""

from readable import RANK_COLORS
from svg import Drawing

drawing = Drawing(
    760,
    420,
    "A PBS job on two hosts",
    "On the login host, qsub hands the script to PBS. PBS starts it once, on the first "
    "host, in the home folder, with the variables of the job. There the script goes to "
    "its folder and activates the environment. Then it asks PBS for one task on each "
    "host, itself included. Each task starts anew: in the home folder, with the "
    "variables of the job and a short PATH, without what the script exported. Each "
    "task goes to the folder, activates the environment again, and becomes torchrun, "
    "which starts the ranks of its host. The two torchruns meet at the first host.",
)
drawing.box(20, 20, 130, 50, "qsub\nlogin host", fill="gray", size=14)
drawing.arrow(150, 45, 208, 45, "PBS")
drawing.group(200, 84, 545, 120, "first host only: the job script")
drawing.box(
    210, 20, 262, 50, "login shell, in $HOME,\nPBS_JOBID, PBS_NODEFILE", size=13
)
drawing.arrow(456, 70, 456, 116)
drawing.box(
    216,
    118,
    250,
    72,
    "cd $PBS_O_WORKDIR\nactivate the environment\nexport ...",
    fill="yellow",
    size=14,
    mono=False,
)
drawing.box(
    536, 128, 196, 52, "pbs_tmrsh HOST ...\nonce for each host", fill="orange", size=14
)
drawing.arrow(466, 154, 534, 154)
for host, (x, name) in enumerate(
    ((20, "first host: task 0"), (395, "second host: task 1"))
):
    drawing.group(x, 236, 350, 170, name)
    drawing.box(
        x + 12,
        268,
        130,
        124,
        "in $HOME again,\nshort PATH,\nPBS_JOBID,\nno exports",
        size=13,
    )
    drawing.box(
        x + 166, 268, 170, 52, "cd, activate,\nexec torchrun", fill="yellow", size=14
    )
    drawing.arrow(x + 142, 294, x + 164, 294)
    for local in range(2):
        rank = 2 * host + local
        left = x + 166 + 88 * local
        drawing.arrow(left + 41, 320, left + 41, 350)
        drawing.box(left, 352, 82, 40, f"rank {rank}", fill=RANK_COLORS[rank], size=14)
drawing.arrow(590, 180, 300, 234)
drawing.arrow(640, 180, 610, 234)
drawing.save(__file__)
