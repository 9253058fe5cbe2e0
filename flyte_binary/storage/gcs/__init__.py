"""Google Cloud Storage; needs the extra `gcs`."""
