"""Draw the practice cluster: one machine, its hosts in worlds of their own."""

from svg import Drawing

WIDTH, HOST, GAP = 720, 208, 17
NODES = ("n1", "n2", "n3")

drawing = Drawing(
    WIDTH,
    372,
    "The practice cluster on one machine",
    "A frame, this machine, holds the host login with the programs slurmctld and "
    "munged at the address 10.77.0.1, and three nodes, n1, n2 and n3, with slurmd and "
    "the job's processes at the addresses 10.77.0.11, 12 and 13. A cable leads from "
    "each node to the bridge below login; on each cable stands what can be changed "
    "there: off, link down, rate, delay. Under all of them lies one file system, the "
    "home that the hosts share.",
)
drawing.group(10, 10, WIDTH - 20, 352, "this machine")
drawing.box(
    230,
    44,
    260,
    62,
    "login: slurmctld, munged\n10.77.0.1",
    fill="yellow",
)
drawing.box(110, 124, 500, 30, "bridge: the network between the hosts", fill="gray")
drawing.line(360, 106, 360, 124)
for number, node in enumerate(NODES):
    x = 31 + number * (HOST + GAP)
    middle = x + HOST / 2
    drawing.line(middle, 154, middle, 216)
    drawing.text(middle + 8, 189, ("rate", "link down", "delay")[number], size=13)
    drawing.box(
        x,
        216,
        HOST,
        72,
        f"{node}: slurmd, your job\n10.77.0.1{number + 1}",
        fill=("blue", "green", "orange")[number],
    )
drawing.box(31, 304, WIDTH - 62, 40, "one file system: the home that all share")
drawing.save(__file__)
