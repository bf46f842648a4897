"""`winnow bench`: how fast a running system answers under load."""
