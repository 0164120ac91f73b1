"""What comes and goes on the socket to the backend: frames, their fields, bytes in pieces."""
