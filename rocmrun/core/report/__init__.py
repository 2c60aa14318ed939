"""What a probe says: its checks as values, how they are read, and what of them is believed."""
