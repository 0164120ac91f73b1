"""What a configuration says, and which ones to try; pure."""
