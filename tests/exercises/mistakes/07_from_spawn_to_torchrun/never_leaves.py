# wrong value: still in the process group
# [answer 3]
device = setup()
train(device, path)
