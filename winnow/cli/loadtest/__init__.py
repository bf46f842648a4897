"""How fast a running system answers under load."""
