# wrong value: state of
# [answer 2]
return 16 * -(-job.parameters // (layout.tensor * layout.pipeline))
