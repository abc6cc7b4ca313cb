"""The tests mirror the package; `house/` checks the project itself. A package, so that tests can share code by name."""
