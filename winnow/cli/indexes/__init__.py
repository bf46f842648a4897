"""Named indexes of a cluster: `winnow indexes`."""
