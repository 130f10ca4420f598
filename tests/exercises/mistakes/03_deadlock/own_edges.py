# wrong value: the row from the left
from_left, from_right = strip[-1].clone(), strip[0].clone()
