# wrong value: is a float | expected a whole number of bytes
# [answer 1]
parts = [ranks if stage >= first else 1 for first in (3, 2, 1)]
return (
    2 * parameters / parts[0] + 2 * parameters / parts[1] + 12 * parameters / parts[2]
)
