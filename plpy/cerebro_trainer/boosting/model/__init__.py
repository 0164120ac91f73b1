"""Boosted trees as they are stored: config, arrays and text. The client shares this by links."""
