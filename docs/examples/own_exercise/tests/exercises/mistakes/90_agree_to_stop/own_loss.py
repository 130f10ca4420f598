# wrong value: should_stop below the mean | rank 0
return loss < target
