# wrong value: c10d_options | --standalone is for a single node
# [answer 2]
return ["--standalone", f"--nproc-per-node={ranks_per_node}"]
