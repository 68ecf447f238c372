"""Decoding: sound, pictures and packets from the bytes that records point to."""
