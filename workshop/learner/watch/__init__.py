"""``workshop watch``: files, keys and checks feed one loop."""
