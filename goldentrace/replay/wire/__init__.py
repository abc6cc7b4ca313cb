"""The wire formats of the providers: requests in, replies out, both ways, and nothing of scripts."""
