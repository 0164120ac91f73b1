"""The versions that a run of `cerebro.train` leaves: their choice, comparison and registration."""
