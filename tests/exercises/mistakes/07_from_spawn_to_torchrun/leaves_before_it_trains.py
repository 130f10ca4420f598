# exception: raised ValueError | process group
# [answer 3]
device = setup()
dist.destroy_process_group()
train(device, path)
