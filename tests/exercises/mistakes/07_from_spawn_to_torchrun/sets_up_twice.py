# exception: raised ValueError | twice
# [answer 3]
setup()
device = setup()
train(device, path)
dist.destroy_process_group()
