"""From what the ranks did to one verdict, and the classic mistakes behind it."""
