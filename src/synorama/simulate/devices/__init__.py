"""What each device would have recorded, in the files that it writes."""
