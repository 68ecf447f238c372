"""What is measured once for a camera and kept in the lab's ``rig.toml``."""
