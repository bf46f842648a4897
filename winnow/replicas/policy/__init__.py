"""Pure policies of calls to replicas: settings, outcomes and numbers in, a decision out."""
