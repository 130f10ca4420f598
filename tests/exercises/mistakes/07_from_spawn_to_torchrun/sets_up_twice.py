# exception: raised ValueError | twice | the process group exists already
# [answer 3]
setup()
device = setup()
train(device, path)
dist.destroy_process_group()
