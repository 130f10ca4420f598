# wrong value: state of
# [answer 2]
ranks = layout.tensor * layout.pipeline * layout.data
return 16 * -(-job.parameters // ranks)
