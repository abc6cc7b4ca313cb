"""Bytes to model and back: canonical JSON and digests, trace and golden lines, configuration and profiles."""
