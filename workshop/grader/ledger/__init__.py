"""What a rank did: each collective, its operators, its writes."""
