"""The web page of a front: static files, and the routes that serve them."""
