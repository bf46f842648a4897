"""gRPC: servers, channels, statuses, deadlines and health checks."""
