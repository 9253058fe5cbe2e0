"""Amazon S3 and what speaks its protocol; needs the extra `s3`."""
