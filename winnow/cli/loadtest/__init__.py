"""`winnow bench`: measures how fast a running system answers under load."""
