"""Container formats, written byte by byte, and the pictures that go into them."""
