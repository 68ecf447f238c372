"""Scans of rooms and of single things, in the files of scanners."""
