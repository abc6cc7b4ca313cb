"""What can be wrong with one trace, decided from the trace alone. One rule, one file; none of them reads a file or
a clock."""
