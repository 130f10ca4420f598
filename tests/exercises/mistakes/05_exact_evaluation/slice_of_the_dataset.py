# exception: one image for a number, none for slice | return dataset[
# [answer 1]
return dataset[rank::world_size]
