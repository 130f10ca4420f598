# exception: TypeError: to() received an invalid combination | called at line | train(setup, path)
# [answer 3]
train(setup, path)
dist.destroy_process_group()
