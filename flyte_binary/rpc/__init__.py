"""The wire: Connect and gRPC-Web over HTTP/1.1, what is checked before a handler runs, how its errors are told."""
