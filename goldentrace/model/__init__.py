"""Values only: what an event, an operation, a trace, a change and a finding are. No file, clock or randomness."""
