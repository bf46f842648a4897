"""gRPC: servers, channels, statuses, deadlines and health, each built in one place."""
