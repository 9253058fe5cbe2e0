"""The console, served under a base path on the same origin as the services."""
