"""Apps as processes of this machine: replicas, scaling, activation by the first request."""
