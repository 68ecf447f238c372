"""Scans, cameras and objects in the world frame of the glasses."""
