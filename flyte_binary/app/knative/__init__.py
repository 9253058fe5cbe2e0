"""Apps as Knative Services of a cluster: client, manifest, spec SHA, subscription, log streamer."""
