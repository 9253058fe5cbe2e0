"""Azure Blob Storage; needs the extra `azure`."""
