"""Communication with the backend: frames, fields of requests, byte streams and the heartbeat."""
