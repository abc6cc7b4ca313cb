"""What people and machines read: one report, many formats, one module per format, loaded when it is asked for."""

from goldentrace.report.formats import FORMATS, explain, render

__all__ = ["FORMATS", "explain", "render"]
