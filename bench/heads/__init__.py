"""What heads on a shared encoder cost, and what happens to them under load."""
