"""The interactive page of a fitted reduction: one HTML file that needs no network. Its map is drawn by map.js."""

from distreduce.report.held_out import HeldOut, HeldOutClasses
from distreduce.report.page import write_report

__all__ = ["HeldOut", "HeldOutClasses", "write_report"]
