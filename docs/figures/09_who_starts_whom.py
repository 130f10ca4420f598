"""Draw who starts whom in a Slurm job whose ranks are started by torchrun."""

from readable import MUTED, RANK_COLORS
from svg import Drawing

drawing = Drawing(
    740,
    400,
    "Who starts whom in a Slurm job",
    "On the login host, sbatch hands the job script to Slurm. Slurm runs it once, on "
    "the first of two nodes, n1. The script calls srun, which starts one task on each "
    "node: a torchrun on n1, and a torchrun on n2. Each torchrun starts the two ranks "
    "of its node: ranks 0 and 1 on n1, ranks 2 and 3 on n2. A dashed line between the "
    "two torchruns shows that they connect at port 20011 of n1.",
)
drawing.box(14, 40, 130, 110, fill="white", dashed=True)
drawing.text(24, 30, "login host", size=13, color=MUTED)
drawing.box(164, 40, 330, 345, fill="white", dashed=True)
drawing.text(174, 30, "node n1, the first one", size=13, color=MUTED)
drawing.box(514, 40, 212, 345, fill="white", dashed=True)
drawing.text(524, 30, "node n2", size=13, color=MUTED)

drawing.box(29, 70, 100, 44, "sbatch", mono=True)
drawing.box(180, 64, 130, 56, "job script,\nruns once", fill="yellow")
drawing.box(370, 70, 100, 44, "srun", mono=True)
drawing.arrow(129, 92, 180, 92)
drawing.arrow(310, 92, 370, 92)

drawing.box(215, 200, 210, 48, "torchrun\nnode rank 0", fill="gray")
drawing.box(530, 200, 180, 48, "torchrun\nnode rank 1", fill="gray")
drawing.arrow(405, 114, 350, 200)
drawing.arrow(440, 114, 600, 200)
drawing.text(226, 160, "one task on each", size=13, color=MUTED)
drawing.text(226, 176, "node of the job", size=13, color=MUTED)
drawing.line(425, 224, 530, 224, color="gray", dashed=True)
drawing.text(408, 268, "they connect", size=12, color=MUTED)
drawing.text(408, 284, "at port", size=12, color=MUTED)
drawing.text(408, 300, "20011", size=12, color=MUTED)

for rank, x in enumerate((190, 325, 526, 628)):
    width = 100 if rank < 2 else 86
    drawing.box(x, 318, width, 44, f"rank {rank}", fill=RANK_COLORS[rank])
    middle = x + width / 2
    beside = 8 if rank % 2 == 0 else -8
    drawing.arrow(middle + beside, 248, middle, 318)
drawing.save(__file__)
