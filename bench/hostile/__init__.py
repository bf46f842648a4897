"""What holds while clients send nonsense, too much, or nothing at all."""
