"""Traces to what is compared: redact, paths, ids, offsets, arguments, results. Pure: no file, clock or randomness."""
