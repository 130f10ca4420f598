# wrong value: must write the file
# [answer 1]
snapshot = {"model": model.state_dict(), "epochs_run": epochs_run}
