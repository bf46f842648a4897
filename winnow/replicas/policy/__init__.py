"""Pure policies of calls to replicas. They decide from settings, outcomes and numbers alone."""
