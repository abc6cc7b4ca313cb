"""Ways to record a run while it happens: in the agent's own code, or from outside of it."""
