# wrong value: no whole number
# [answer 2]
own = job.parameters / (layout.tensor * layout.pipeline)
return 4 * own + 12 * own / layout.data
