"""The single ingress: requests to apps by their path or host, passed on to a replica."""
