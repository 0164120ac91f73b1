"""The first minute: what it trains, and how it is told."""
