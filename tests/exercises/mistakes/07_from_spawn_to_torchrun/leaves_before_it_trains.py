# exception: raised ValueError | process group | in no group here
# [answer 3]
device = setup()
dist.destroy_process_group()
train(device, path)
