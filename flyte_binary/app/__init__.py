"""Apps: long-running services behind one ingress, on Knative or as processes of this machine."""
