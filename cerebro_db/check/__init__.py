"""Steps of `cerebro-db check`, from the server down to the machines of a cluster."""
