"""The log of a run in schema cerebro, and the costs that it records."""
