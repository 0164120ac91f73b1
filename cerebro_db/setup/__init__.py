"""Setup of an own server for cerebro_db: what is missing, how it is added, how it is removed."""
