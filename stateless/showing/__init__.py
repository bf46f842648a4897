"""What a front tells people who look after it."""
