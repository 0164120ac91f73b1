"""`cerebro.train` and `cerebro.plan`, from the raw table to the version of a model."""
